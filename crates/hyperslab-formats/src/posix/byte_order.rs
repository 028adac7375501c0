//! Numbers in the other byte order.

/// Reverses the bytes of each number of `size` bytes; a part of one at the end stays as it is.
pub(crate) fn reverse_each(bytes: &mut [u8], size: u64) {
    match size {
        2 => bytes.as_chunks_mut().0.iter_mut().for_each(|n| *n = u16::from_ne_bytes(*n).swap_bytes().to_ne_bytes()),
        4 => bytes.as_chunks_mut().0.iter_mut().for_each(|n| *n = u32::from_ne_bytes(*n).swap_bytes().to_ne_bytes()),
        8 => bytes.as_chunks_mut().0.iter_mut().for_each(|n| *n = u64::from_ne_bytes(*n).swap_bytes().to_ne_bytes()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_turned_by_itself() {
        let turned = |size| {
            let mut bytes: Vec<u8> = (0..17).collect();
            reverse_each(&mut bytes, size);
            bytes
        };
        assert_eq!(turned(1), (0..17).collect::<Vec<u8>>());
        for size in [2, 4, 8] {
            let expected: Vec<u8> =
                (0..17).map(|at| if at == 16 { at } else { at / size * size + size - 1 - at % size }).collect();
            assert_eq!(turned(u64::from(size)), expected);
        }
    }
}
