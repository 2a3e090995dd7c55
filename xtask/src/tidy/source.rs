//! Rust source with everything that is not code blanked out, so that a plain search of it finds only code.

/// The text as ASCII, line by line and column by column as it was, with comments, strings and characters as spaces.
pub(super) fn mask(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    while code.len() < chars.len() {
        let at = code.len();
        let hidden = hidden_end(&chars, at).min(chars.len());
        for &c in &chars[at..hidden] {
            code.push(if c == '\n' { '\n' } else { ' ' });
        }
        if hidden == at {
            code.push(if chars[at].is_ascii() { chars[at] } else { '?' });
        }
    }
    code
}

/// The end of the comment or literal that begins at `at`; `at` itself where none does.
fn hidden_end(chars: &[char], at: usize) -> usize {
    match chars[at..] {
        ['/', '/', ..] => chars[at..].iter().position(|&c| c == '\n').map_or(chars.len(), |length| at + length),
        ['/', '*', ..] => block_comment_end(chars, at),
        ['"', ..] => quoted_end(chars, at + 1, '"'),
        ['\'', '\\', ..] => quoted_end(chars, at + 1, '\''),
        // Any other quote opens a lifetime or a label.
        ['\'', _, '\'', ..] => at + 3,
        ['r', ..] | ['b' | 'c', 'r', ..] if at == 0 || !is_word(chars[at - 1]) => raw_string_end(chars, at),
        _ => at,
    }
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < chars.len() {
        match chars[at..] {
            ['/', '*', ..] => (at, depth) = (at + 2, depth + 1),
            ['*', '/', ..] if depth == 1 => return at + 2,
            ['*', '/', ..] => (at, depth) = (at + 2, depth - 1),
            _ => at += 1,
        }
    }
    at
}

fn quoted_end(chars: &[char], mut at: usize, quote: char) -> usize {
    while at < chars.len() && chars[at] != quote {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

fn raw_string_end(chars: &[char], start: usize) -> usize {
    let open = chars[start..].iter().take_while(|c| c.is_ascii_lowercase()).count() + start;
    let hashes = chars[open..].iter().take_while(|&&c| c == '#').count();
    if chars[start..open].last() != Some(&'r') || open - start > 2 || chars.get(open + hashes) != Some(&'"') {
        return start;
    }
    let mut at = open + hashes + 1;
    while at < chars.len() {
        if chars[at] == '"' && chars[at + 1..].iter().take_while(|&&c| c == '#').take(hashes).count() == hashes {
            return at + 1 + hashes;
        }
        at += 1;
    }
    at
}

/// For each line of masked code, whether it belongs to an item under `#[cfg(test)]`.
pub(super) fn test_lines(code: &str) -> Vec<bool> {
    let mut lines = vec![false; code.lines().count()];
    for marker in ["#[cfg(test)]", "#[cfg(all(test"] {
        for (start, _) in code.match_indices(marker) {
            let end = item_end(code, start + marker.len());
            lines[line_of(code, start)..=line_of(code, end)].fill(true);
        }
    }
    lines
}

/// Where the item that goes on at `start` ends: its closing brace, or its semicolon.
pub(super) fn item_end(code: &str, start: usize) -> usize {
    let (mut braces, mut brackets) = (0i32, 0i32);
    for (offset, c) in code[start..].char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            '{' => braces += 1,
            '}' => braces -= 1,
            _ => {}
        }
        if (c == '}' && braces <= 0) || (c == ';' && braces == 0 && brackets <= 0) {
            return start + offset;
        }
    }
    code.trim_end().len().saturating_sub(1)
}

/// The line, counted from 0, that holds an offset.
pub(super) fn line_of(code: &str, offset: usize) -> usize {
    code[..offset].matches('\n').count()
}

/// Where `pattern` stands in `code` as whole words.
pub(super) fn find_words<'a>(code: &'a str, pattern: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_edge =
        |inside: Option<char>, outside: Option<char>| !(inside.is_some_and(is_word) && outside.is_some_and(is_word));
    code.match_indices(pattern).map(|(at, _)| at).filter(move |&at| {
        is_edge(pattern.chars().next(), code[..at].chars().next_back())
            && is_edge(pattern.chars().next_back(), code[at + pattern.len()..].chars().next())
    })
}

/// Each name that follows a keyword such as `struct`, with its offset.
pub(super) fn names_after<'a>(code: &'a str, keyword: &'a str) -> impl Iterator<Item = (usize, &'a str)> + 'a {
    find_words(code, keyword).filter_map(move |at| {
        let rest = code[at + keyword.len()..].trim_start();
        let name = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        (!name.is_empty()).then_some((at, name))
    })
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_characters_are_blanked_and_columns_kept() {
        for (text, code) in [
            ("a // b\nc", "a     \nc"),
            ("a /* b /* c */ d */ e", "a                   e"),
            (r#"f("x \" y", 'z')"#, "f(        ,    )"),
            (r##"f(r#"a " b"#, br"c")"##, "f(          ,      )"),
            (r"f('\'', b'\\', '{')", "f(    , b    ,    )"),
            ("fn f<'a>(x: &'a str) { 'l: loop {} }", "fn f<'a>(x: &'a str) { 'l: loop {} }"),
            ("let r#type = for_r(\"µ\");", "let r#type = for_r(   );"),
            ("\"// not a comment\" x", "                   x"),
            ("\"never closed", "             "),
        ] {
            assert_eq!(mask(text), code, "{text}");
        }
    }

    #[test]
    fn test_items_end_with_their_brace_or_semicolon() {
        let code = "a\n#[cfg(test)]\nuse b;\nc\n#[cfg(test)]\nmod tests {\n  fn d(x: [u8; 2]) {}\n}\ne\n";
        assert_eq!(test_lines(code), [false, true, true, false, true, true, true, true, false]);
    }

    #[test]
    fn words_match_whole() {
        assert_eq!(find_words("MyHashMap HashMap<u8> HashMapper", "HashMap").collect::<Vec<_>>(), [10]);
        assert_eq!(find_words("unsafe_code unsafe{", "unsafe").collect::<Vec<_>>(), [12]);
        assert_eq!(names_after("pub struct A; struct $name; fn()", "struct").collect::<Vec<_>>(), [(4, "A")]);
        assert_eq!(names_after("x: fn(u8), fn run()", "fn").collect::<Vec<_>>(), [(11, "run")]);
    }
}
