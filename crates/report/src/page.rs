//! What text is laid out on: how wide it is and whether it takes colour.

use comfy_table::{Attribute, Cell, CellAlignment, Color, ContentArrangement, Table, TableComponent, presets};
use std::io::IsTerminal;

/// Width where there is no terminal to ask.
const WIDTH: usize = 100;
/// Bounds on what a terminal says: below, tables fall apart; above, the eye loses the line.
const WIDTHS: std::ops::RangeInclusive<usize> = 80..=140;

/// How wide text may be and whether it takes colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// Width in character cells.
    pub width: usize,
    /// Whether ANSI colours are wanted.
    pub colour: bool,
    /// Whether somebody looks at it through a window of this width; a file takes longer lines as well.
    pub is_terminal: bool,
}

impl Page {
    /// A plain page of 100 columns, as for a file.
    pub const PLAIN: Page = Page { width: WIDTH, colour: false, is_terminal: false };

    /// The page that standard output is: its width if it is a terminal, colours if terminals take them.
    pub fn of_terminal() -> Page {
        if !std::io::stdout().is_terminal() {
            return Page::PLAIN;
        }
        let width = Table::new().width().map_or(WIDTH, usize::from).clamp(*WIDTHS.start(), *WIDTHS.end());
        Page { width, colour: Page::takes_colour(), is_terminal: true }
    }

    /// Whether text on a terminal may be coloured: unless `NO_COLOR` is set (<https://no-color.org>), or `TERM` is `dumb`.
    pub fn takes_colour() -> bool {
        let is_unset = |name| std::env::var_os(name).is_none_or(|value| value.is_empty());
        is_unset("NO_COLOR") && std::env::var_os("TERM").is_none_or(|terminal| terminal != "dumb")
    }

    /// `text` with an ANSI attribute around it, or as it is.
    fn painted(self, code: &str, text: &str) -> String {
        if self.colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// `text` in lines that fit the page, the first after `label` and the others indented as far. Lines end where a clause
    /// does, so that figures keep their units; only a clause longer than a line breaks between words.
    pub fn wrap(self, label: &str, text: &str) -> String {
        let indent = label.chars().count();
        let (mut out, mut column) = (label.to_owned(), indent);
        for piece in pieces(text, self.width - indent) {
            let length = piece.chars().count();
            if column > indent && column + 1 + length > self.width {
                out += &format!("\n{:indent$}", "");
                column = indent;
            } else if column > indent {
                out.push(' ');
                column += 1;
            }
            out.push_str(piece);
            column += length;
        }
        out.push('\n');
        out
    }

    pub(crate) fn strong(self, text: &str) -> String {
        self.painted("1", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.painted("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.painted("1;31", text)
    }

    /// A table without frame: first column to the left, the others to the right; an empty header shows none.
    pub(crate) fn table(self, header: &[&str]) -> Table {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width((self.width - INDENT.len()) as u16);
        if self.colour {
            table.enforce_styling()
        } else {
            table.force_no_tty()
        };
        if !header.is_empty() {
            let cells = header.iter().enumerate();
            table.set_header(cells.map(|(column, name)| aligned(column, name).add_attribute(Attribute::Dim)));
            table.set_style(TableComponent::HeaderLines, '─');
            table.set_style(TableComponent::MiddleHeaderIntersections, '─');
        }
        table
    }
}

/// Everything below a heading stands this far in.
const INDENT: &str = "  ";

/// A cell: the first column of a table to the left, the others to the right.
pub(crate) fn aligned(column: usize, text: &str) -> Cell {
    Cell::new(text).set_alignment(if column == 0 { CellAlignment::Left } else { CellAlignment::Right })
}

/// A row of such cells.
pub(crate) fn cells<T: AsRef<str>>(texts: &[T]) -> Vec<Cell> {
    texts.iter().enumerate().map(|(column, text)| aligned(column, text.as_ref())).collect()
}

/// Character cells for a bar beside the other columns of its table.
pub(crate) fn bar_cells(page: Page) -> usize {
    (page.width / 2).clamp(20, 50)
}

/// A cell with a bar in it.
pub(crate) fn bar_cell(bar: &str) -> Cell {
    Cell::new(bar).fg(Color::Cyan)
}

/// The table's lines, indented, without blanks at their ends, after `out`.
pub(crate) fn put(out: &mut String, table: &Table) {
    for line in table.lines() {
        out.push_str(format!("{INDENT}{line}").trim_end());
        out.push('\n');
    }
}

/// The clauses of `text`, each longer than `room` cut into its words.
fn pieces(text: &str, room: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.match_indices([',', ';', ':', '.', '·']).map(|(at, mark)| at + mark.len());
        let end = end.into_iter().find(|end| rest[*end..].starts_with(' ')).unwrap_or(rest.len());
        let (clause, after) = rest.split_at(end);
        if clause.chars().count() > room {
            pieces.extend(clause.split(' '))
        } else {
            pieces.push(clause)
        }
        rest = after.trim_start();
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_after_clauses_and_long_clauses_between_words() {
        let page = Page { width: 24, ..Page::PLAIN };
        assert_eq!(page.wrap("  a  ", "took 120 ns; and 3.40 µs after"), "  a  took 120 ns;\n     and 3.40 µs after\n");
        assert_eq!(page.wrap("", "one clause that is longer than a line"), "one clause that is\nlonger than a line\n");
        assert_eq!(page.wrap("x ", ""), "x \n");
    }
}
