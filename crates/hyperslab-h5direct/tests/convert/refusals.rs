//! What is not converted, and what is no conversion.

use hyperslab_core::{Datatype, ErrorKind};
use hyperslab_h5direct::Conversion;

fn parse(text: &str) -> Datatype {
    text.parse().unwrap()
}

#[test]
fn what_is_no_number_is_refused() {
    for (from, to) in [("|S4", "|S8"), ("|V4", "<i4"), ("<i4", "|b1"), ("|b1", "|u1"), ("<f4", "|S4"), ("|V3", "|V4")] {
        let error = Conversion::new(&parse(from), &parse(to)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{from} to {to}");
    }
    let of = |name: &str, dtype: &str| Datatype::packed_compound([(name, parse(dtype)), ("n", parse("<i4"))]).unwrap();
    let error = Conversion::new(&of("a", "|S4"), &of("a", "|S5")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.to_string().contains("\"a\""), "{error}");
    assert!(Conversion::new(&of("a", "|S4"), &parse("<i4")).is_err());
    let single_writer = |name: &str| Datatype::packed_compound([(name, parse("<i4"))]).unwrap();
    assert_eq!(Conversion::new(&single_writer("a"), &single_writer("b")).unwrap_err().kind(), ErrorKind::Unsupported);
    // Text is no obstacle where it stays as it is.
    assert!(Conversion::new(&of("a", "|S4"), &of("b", "|S5")).unwrap().is_some());
}

#[test]
fn the_same_type_needs_no_conversion() {
    for text in ["<i4", ">f8", "|S4", "|V3", "|b1"] {
        assert!(Conversion::new(&parse(text), &parse(text)).unwrap().is_none(), "{text}");
    }
}

#[test]
fn lengths_are_checked() {
    let conversion = Conversion::new(&parse("<i4"), &parse("<i2")).unwrap().unwrap();
    conversion.convert(&[], &mut []).unwrap();
    for (from, to) in [(4, 4), (4, 0), (5, 2), (8, 2), (0, 2), (7, 4)] {
        let error = conversion.convert(&vec![0; from], &mut vec![0; to]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{from} {to}");
    }
    assert!(conversion.convert_in_place(&mut [0; 7], 2).is_err());
    assert!(conversion.convert_in_place(&mut [0; 7], usize::MAX / 2).is_err());
    let of = |dtype: &str| Datatype::packed_compound([("a", parse(dtype))]).unwrap();
    let fields = Conversion::new(&of("<i4"), &of("<i2")).unwrap().unwrap();
    assert!(fields.convert_in_place(&mut [0; 8], 2).is_err());
}
