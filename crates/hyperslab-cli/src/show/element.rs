//! Elements as text.

use hyperslab_core::{ByteOrder, Datatype};

/// One element, as a number, a quoted text, or fields in braces.
pub fn text(dtype: &Datatype, bytes: &[u8]) -> String {
    match dtype {
        Datatype::Integer { signed, order, .. } => integer(&in_order(bytes, *order), *signed),
        Datatype::Float { size, order } => float(*size, &in_order(bytes, *order)),
        Datatype::Bool => if bytes.first().is_some_and(|byte| *byte != 0) { "true" } else { "false" }.into(),
        Datatype::FixedString(_) | Datatype::VariableString => quoted(bytes),
        Datatype::Opaque(_) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        Datatype::Compound(compound) => {
            let field = |field: &hyperslab_core::Field| {
                let (from, size) = (field.offset as usize, field.dtype.size() as usize);
                bytes.get(from..from + size).map_or_else(String::new, |bytes| text(&field.dtype, bytes))
            };
            format!("{{{}}}", compound.fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
    }
}

/// Text in quotes, without the NULs after it, on one line.
pub fn quoted(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let mut out = String::from("\"");
    for c in String::from_utf8_lossy(&bytes[..end]).chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// The bytes of a number, least significant first.
fn in_order(bytes: &[u8], order: ByteOrder) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    bytes
}

fn integer(little: &[u8], signed: bool) -> String {
    let negative = signed && little.last().is_some_and(|byte| byte & 0x80 != 0);
    let mut wide = [if negative { 0xff } else { 0 }; 16];
    for (to, from) in wide.iter_mut().zip(little) {
        *to = *from;
    }
    i128::from_le_bytes(wide).to_string()
}

fn float(size: u8, little: &[u8]) -> String {
    match (size, little) {
        (4, &[a, b, c, d]) => short(f32::from_le_bytes([a, b, c, d])),
        (8, &[a, b, c, d, e, f, g, h]) => short(f64::from_le_bytes([a, b, c, d, e, f, g, h])),
        (2, &[a, b]) => short(half::f16::from_le_bytes([a, b]).to_f32()),
        _ => String::new(),
    }
}

/// As few digits as tell the number; very large and very small ones with an exponent.
fn short<F: std::fmt::Display + std::fmt::LowerExp>(value: F) -> String {
    let plain = value.to_string();
    if plain.len() > 16 { format!("{value:e}") } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_words() {
        let be = Datatype::Integer { size: 2, signed: true, order: ByteOrder::Big };
        assert_eq!(text(&be, &[0xff, 0xfe]), "-2");
        assert_eq!(text(&Datatype::U8, &[200]), "200");
        assert_eq!(text(&Datatype::F32, &9.969_21e36f32.to_ne_bytes()), "9.96921e36");
        assert_eq!(text(&Datatype::F64, &(-1.5f64).to_ne_bytes()), "-1.5");
        assert_eq!(text(&Datatype::FixedString(4), b"a\"\n\0"), "\"a\\\"\\n\"");
        assert_eq!(text(&Datatype::Bool, &[1]), "true");
    }
}
