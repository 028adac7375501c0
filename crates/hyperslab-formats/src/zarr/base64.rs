//! Base64 as Zarr writes fill values of strings and raw bytes.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The padded text form of `bytes`.
pub fn encode(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = group.iter().enumerate().fold(0u32, |w, (i, &b)| w | u32::from(b) << (16 - 8 * i));
        for i in 0..4 {
            if i <= group.len() {
                out.push(char::from(DIGITS[(word >> (18 - 6 * i) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

/// The bytes of padded text, or `None` when it is not base64.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let bytes = text.as_bytes();
    if !bytes.len().is_multiple_of(4) {
        return None;
    }
    let padding = bytes.iter().rev().take_while(|b| **b == b'=').count();
    if padding > 2 {
        return None;
    }
    let mut out = Vec::with_capacity(bytes.len() / 4 * 3);
    let digits = &bytes[..bytes.len() - padding];
    for group in digits.chunks(4) {
        let mut word = 0u32;
        for (i, digit) in group.iter().enumerate() {
            let value = DIGITS.iter().position(|d| d == digit)?;
            word |= (value as u32) << (18 - 6 * i);
        }
        let kept = group.len() - 1;
        out.extend_from_slice(&word.to_be_bytes()[1..=kept]);
    }
    Some(out)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn text_and_bytes_agree() {
        for (bytes, text) in
            [(&b""[..], ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"foo", "Zm9v"), (&[0, 255, 62, 63], "AP8+Pw==")]
        {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
        for bad in ["Z", "Zg=", "====", "Z===", "Zg!=", "Z=g="] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
