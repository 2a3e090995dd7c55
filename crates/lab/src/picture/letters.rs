//! How wide a text is, about: no font is measured, so these are the widths of one that is among the widest on screens.

/// Of a text in letters of so many pixels.
pub(super) fn width(text: &str, size: f64) -> f64 {
    text.chars().map(letter).sum::<f64>() * size
}

/// The same where it is bold.
pub(super) fn bold_width(text: &str, size: f64) -> f64 {
    width(text, size) * 1.12
}

/// In parts of the size.
fn letter(letter: char) -> f64 {
    match letter {
        'i' | 'j' | 'l' | 'I' | 'J' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | ' ' => 0.33,
        'f' | 'r' | 't' | '(' | ')' | '[' | ']' | '-' | '/' | '"' => 0.41,
        'm' | 'w' | 'M' | 'W' | '%' | '@' => 0.95,
        'A'..='Z' => 0.71,
        // Scripts whose signs are as wide as they are high.
        '\u{2e80}'.. => 1.0,
        _ => 0.62,
    }
}

/// A text in lines that fit, broken between words.
pub(super) fn lines(text: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        let longer = if line.is_empty() { word.to_owned() } else { format!("{line} {word}") };
        if line.is_empty() || width(&longer, size) <= room {
            *line = longer;
        } else {
            lines.push(word.into());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capitals_are_wider_than_small_letters_and_no_line_is_too_long() {
        assert!(width("TRANS", 12.0) > 1.1 * width("trans", 12.0) && width("TRANS", 12.0) > 40.0);
        let text = "what a reader has to know of it before anything else";
        let broken = lines(text, 11.0, 120.0);
        assert!(broken.len() > 2 && broken.iter().all(|line| width(line, 11.0) <= 120.0), "{broken:?}");
        assert_eq!(broken.join(" "), text);
        assert_eq!(lines("one", 11.0, 1.0), ["one"], "a word is not broken");
        assert_eq!(lines("", 11.0, 1.0), [""]);
    }
}
