//! Names as people write them: papers print `BaseDeepFlash` and `24HR`, command lines `base-deepflash`.

/// Whether a thing of this name is meant. Capitals, `-` and `_` make no difference.
pub fn is_called(name: &str, said: &str) -> bool {
    let plain = |text: &str| -> Vec<u8> {
        text.bytes().filter(|byte| !b"-_".contains(byte)).map(|byte| byte.to_ascii_lowercase()).collect()
    };
    plain(name) == plain(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_be_written_as_papers_do() {
        for said in ["base_deepflash", "base-deepflash", "BaseDeepFlash", "BASE_DEEPFLASH"] {
            assert!(is_called("base_deepflash", said), "{said}");
        }
        assert!(!is_called("base_deepflash", "deepflash") && !is_called("tlc-1.5tb", "tlc-15tb"));
    }
}
