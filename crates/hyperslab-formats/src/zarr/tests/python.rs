//! zarr-python reads what we write and the other way round. Runs where the environment variable `HYPERSLAB_PYTHON`
//! names an interpreter with zarr 3 and numpy.

use super::*;
use hyperslab_core::{Attribute, Datatype, Filter};
use std::process::Command;

fn python(script: &str, path: &Path) -> Option<String> {
    let interpreter = std::env::var_os("HYPERSLAB_PYTHON")?;
    let program = format!(
        "import sys, warnings, json\nwarnings.simplefilter('ignore')\nimport numpy as np, zarr\npath = sys.argv[1]\n{script}"
    );
    let output = Command::new(interpreter).arg("-c").arg(program).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

fn ours(store: &Arc<dyn Container>, name: &str, spec: &ArraySpec) -> Vec<u8> {
    let array = store.create(name, spec).unwrap();
    let element = spec.dtype.size() as usize;
    let len = spec.shape.iter().product::<u64>() as usize * element;
    let mut data = pattern(len, name.len());
    match spec.dtype {
        Datatype::Bool => data.iter_mut().for_each(|b| *b %= 2),
        // NaNs do not compare.
        Datatype::Float { .. } => data.iter_mut().for_each(|b| *b %= 0x70),
        _ => {}
    }
    write(&array, &Selection::all(&spec.shape).unwrap(), &data).unwrap();
    data
}

#[test]
fn zarr_python_reads_ours() {
    if std::env::var_os("HYPERSLAB_PYTHON").is_none() {
        return;
    }
    let compound =
        Datatype::packed_compound([("a", "<f4".parse::<Datatype>().unwrap()), ("b", "<i8".parse().unwrap())]);
    let padded =
        Datatype::compound(12, vec![hyperslab_core::Field { name: "a".into(), offset: 4, dtype: Datatype::F32 }]);
    for stack in STACKS.iter().chain(&[
        "zarr(version=2,codec=zstd,shuffle=yes)",
        "zarr(version=2,codec=gzip)",
        "zarr(codec=blosc)",
    ]) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.zarr");
        let store = create(stack, &path);
        let mut types: Vec<Datatype> = ["|i1", "<u2", ">i4", "<i8", ">u8", "<f2", ">f4", "<f8", "|b1", "|S5", "|V3"]
            .iter()
            .map(|t| t.parse().unwrap())
            .collect();
        types.extend([compound.as_ref().unwrap().clone(), padded.as_ref().unwrap().clone()]);
        let nested =
            Datatype::packed_compound([("a", Datatype::U8), ("n", compound.as_ref().unwrap().clone())]).unwrap();
        types.extend((!stack.contains("version=2")).then_some(nested));
        let mut expected = Vec::new();
        // zarr-python 3.1 cannot open shards of raw bytes or structures, its own included.
        types
            .retain(|dtype| !(stack.contains("shard") && matches!(dtype, Datatype::Opaque(_) | Datatype::Compound(_))));
        for (i, dtype) in types.iter().enumerate() {
            let mut spec = ArraySpec::new(dtype.clone(), &[7, 5]);
            if !stack.contains("chunk") {
                spec.chunk = Some([4, 3][..].into());
            }
            let name = format!("g/a{i}");
            let data = ours(&store, &name, &spec);
            let kind = match dtype {
                Datatype::Compound(c) if c.size == 13 => {
                    "[('a', 'u1'), ('n', [('a', '<f4'), ('b', '<i8')])]".to_owned()
                }
                Datatype::Compound(c) if c.fields.len() == 2 => "[('a', '<f4'), ('b', '<i8')]".to_owned(),
                Datatype::Compound(c) => format!("'|V{}'", c.size),
                plain => format!("'{plain}'"),
            };
            expected.push(format!("({name:?}, {kind}, bytes({data:?}))"));
        }
        store.set_attribute("g", "text", &Attribute::text("hé")).unwrap();
        store
            .set_attribute(
                "g/a0",
                "list",
                &Attribute {
                    dtype: Datatype::F32,
                    shape: [2][..].into(),
                    data: [1.5f32, 2.0].iter().flat_map(|v| v.to_ne_bytes()).collect(),
                },
            )
            .unwrap();
        store.set_attribute("", "n", &Attribute::integer(-4)).unwrap();
        store.close().unwrap();
        let script = format!(
            "g = zarr.open_group(path, mode='r')
assert g.attrs['n'] == -4 and g['g'].attrs['text'] == 'hé' and g['g/a0'].attrs['list'] == [1.5, 2.0]
for name, kind, data in [{}]:
    a = g[name]
    want = np.frombuffer(data, dtype=kind).reshape(7, 5)
    got = a[:]
    assert got.dtype.itemsize == want.dtype.itemsize and got.dtype.kind == want.dtype.kind, (name, got.dtype)
    assert got.astype(want.dtype).tobytes() == data, (name, kind, got, want)
print('read', len(list(g['g'].arrays())))",
            expected.join(", ")
        );
        assert_eq!(python(&script, &path).unwrap(), format!("read {}\n", types.len()), "{stack}");
    }
}

#[test]
fn we_read_zarr_python() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.zarr");
    let script = "
out = []
for version in (2, 3):
    root = zarr.create_group(path + str(version), zarr_format=version, attributes={'t': 'x', 'nan': float('nan'), 'deep': {'a': 1}})
    cases = []
    for dtype in ['|i1', '<u2', '<i4', '>i8', '<f2', '>f4', '<f8', '|b1', '|S5', '|V3', [('a', '<f4'), ('b', '<i8')]]:
        cases.append((dtype, {}))
    if version == 2:
        from numcodecs import Blosc, GZip, Zstd, Shuffle
        cases += [('<f4', dict(order='F')), ('<f4', dict(compressors=Blosc(cname='zstd', shuffle=Blosc.BITSHUFFLE))),
                  ('<f4', dict(compressors=GZip(3))), ('<f4', dict(compressors=None)),
                  ('<f4', dict(compressors=Zstd(1), filters=[Shuffle(4)])),
                  ('<f4', dict(chunk_key_encoding={'name': 'v2', 'separator': '/'}))]
    else:
        from zarr.codecs import BloscCodec, GzipCodec, ZstdCodec, BytesCodec, Crc32cCodec
        cases += [([('a', '<f4'), ('n', [('x', '<i2'), ('y', 'S3')])], {}), ('<f4', dict(compressors=BloscCodec(cname='lz4', typesize=4))), ('<f4', dict(compressors=GzipCodec(level=2))),
                  ('<f4', dict(compressors=[ZstdCodec(level=1, checksum=True), Crc32cCodec()])), ('<f4', dict(compressors=None)),
                  ('<f4', dict(serializer=BytesCodec(endian='big'))), ('<f4', dict(shards=(8, 6))),
                  ('<f4', dict(shards=(8, 6), compressors=None)),
                  ('<f4', dict(chunk_key_encoding={'name': 'v2', 'separator': '.'}))]
    for i, (dtype, options) in enumerate(cases):
        d = np.dtype(dtype)
        data = (np.arange(35 * d.itemsize, dtype=np.int64) * 31 % 100 + 1).astype('u1')
        if d.kind == 'b': data %= 2
        values = np.frombuffer(data.tobytes(), dtype=d).reshape(7, 5)
        chunks = (4, 3)
        a = root.create_array(f'a{i}', shape=(7, 5), chunks=chunks, dtype=d, **options)
        a[:] = values
        a.attrs['k'] = [1, 2]
        # what is stored is the array's own order: version 3 says it in the codec
        stored = values
        if version == 3 and d.kind in 'iuf':
            stored = values.astype(d.newbyteorder('>' if 'serializer' in options else '<'))
        out.append((version, f'a{i}', stored.tobytes().hex()))
    zarr.consolidate_metadata(path + str(version))
print(json.dumps(out))";
    let Some(text) = python(script, &path) else { return };
    let cases: Vec<(u8, String, String)> = serde_json::from_str(&text).unwrap();
    assert!(cases.len() > 30);
    for (version, name, hex) in cases {
        let store = open(&dir.path().join(format!("s.zarr{version}")), OpenMode::Read);
        let array = store.array(&name).unwrap();
        let want: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        assert_eq!(read_all(&array), want, "version {version} {name} {:?}", array.spec().unwrap());
        assert_eq!(array.spec().unwrap().max_shape, Some(vec![None, None]));
        let part = Selection::strided(&[1, 0], &[2, 3], &[3, 2], &[1, 1]).unwrap();
        let element = array.spec().unwrap().dtype.size();
        let runs = part.runs(&[7, 5], element).unwrap();
        let some: Vec<u8> = runs.flat_map(|run| want[run.offset as usize..run.end() as usize].to_vec()).collect();
        assert_eq!(read(&array, &part), some);
        assert_eq!(
            store.attribute(&name, "k").unwrap().data,
            [1i64, 2].iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<_>>()
        );
        assert_eq!(store.attribute("", "t").unwrap().as_text(), Some("x"));
        assert_eq!(store.attribute("", "nan").unwrap().as_text(), Some("NaN"));
        assert!(store.attribute("", "deep").is_err());
    }
}

#[test]
fn both_change_one_store() {
    for (version, stack) in [(2, "zarr(version=2)"), (3, "zarr")] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("s.zarr");
        let store = create(stack, &path);
        let spec = ArraySpec {
            max_shape: Some(vec![None]),
            filters: vec![Filter::Shuffle, Filter::Deflate(3)],
            fill_value: Some(vec![9, 0]),
            ..spec("<u2", &[10], &[4])
        };
        let data = ours(&store, "a", &spec);
        store.close().unwrap();
        drop(store);
        // zarr-python leaves the cut chunk as it is; the elements must not come back.
        let script = "a = zarr.open_array(path + '/a', mode='r+')\na[0] = 77\na.resize((5,))\nprint(a.metadata.zarr_format, a.fill_value)";
        let Some(said) = python(script, &path) else { return };
        assert_eq!(said, format!("{version} 9\n"));
        let store = open(&path, OpenMode::Update);
        let array = store.array("a").unwrap();
        array.resize(&[9]).unwrap();
        let mut expected = [&[77, 0], &data[2..10]].concat();
        expected.extend([9, 0].repeat(4));
        assert_eq!(read_all(&array), expected);
        let shown = python("print(zarr.open_group(path, mode='r')['a'][:].tolist())", &path).unwrap();
        let numbers: Vec<u16> = expected.chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
        assert_eq!(shown, format!("{numbers:?}\n"));
    }
}
