//! Tables without frames, as the summaries of runs have them.

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use report::Page;
use std::ops::Range;

/// Rows with their columns side by side, each line two cells in. Columns in `right` stand to the right.
pub(crate) fn table(page: Page, rows: &[Vec<String>], right: &[usize]) -> String {
    // A name is read whole; figures beside it break where they must.
    arranged(page, rows, right, 0..1)
}

/// The same where figures are read whole and names before them break: a digest in two parts is none.
pub(crate) fn figures(page: Page, rows: &[Vec<String>], right: &[usize]) -> String {
    arranged(page, rows, right, 1..rows.first().map_or(1, Vec::len))
}

/// A table of figures below a head, of which none is ever cut: as wide as it has to be, and on a terminal that is too narrow for that
/// with names of the head that go on below their underscores. The first column stands to the left.
pub(crate) fn grid(page: Page, rows: &[Vec<String>]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
    let columns = rows.first().map_or(0, Vec::len);
    let widest = |column: usize, from: usize| {
        rows[from.min(rows.len())..].iter().map(|row| row[column].chars().count()).max().unwrap_or_default()
    };
    // A cell in from the left, and one between columns on either side.
    let needed: usize = (0..columns).map(|column| widest(column, 0) + 2).sum();
    let is_tight = page.is_terminal && needed + 1 > page.width;
    for (line, row) in rows.iter().enumerate() {
        table.add_row(row.iter().enumerate().map(|(column, text)| {
            let text = if line == 0 && is_tight { folded(text, widest(column, 1)) } else { text.clone() };
            Cell::new(text).set_alignment(if column > 0 { CellAlignment::Right } else { CellAlignment::Left })
        }));
    }
    table.lines().map(|line| format!(" {}\n", line.trim_end())).collect()
}

/// A name in lines of its words, each with its underscore, as many on a line as fit.
fn folded(name: &str, width: usize) -> String {
    let (mut text, mut column) = (String::new(), 0);
    for word in name.split_inclusive('_') {
        let length = word.chars().count();
        if column > 0 && column + length > width {
            text.push('\n');
            column = 0;
        }
        text += word;
        column += length;
    }
    text
}

fn arranged(page: Page, rows: &[Vec<String>], right: &[usize], whole: Range<usize>) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(page.width as u16 - 2).force_no_tty();
    for row in rows {
        table.add_row(row.iter().enumerate().map(|(column, text)| {
            let side = if right.contains(&column) { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(text).set_alignment(side)
        }));
    }
    for column in table.column_iter_mut().skip(whole.start).take(whole.len()) {
        column.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.lines().map(|line| format!(" {}\n", line.trim_end())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        let head = (0..12).map(|column| format!("over_provisioning_{column}"));
        let figures = (0..12).map(|column| format!("0.005371{column}"));
        vec![head.collect(), figures.collect()]
    }

    #[test]
    fn no_figure_is_cut_on_a_page_that_is_too_narrow() {
        let narrow = Page { width: 80, colour: false, is_terminal: true };
        let text = grid(narrow, &rows());
        for word in ["over_", "provisioning_", "0.0053710", "0.00537111"] {
            let is_whole = |line: &str| line.split_whitespace().any(|found| found == word);
            assert!(text.lines().any(is_whole), "{word}: {text}");
        }
        assert!(!text.contains("over_provisioning_"), "{text}");
        let wide = Page { width: 400, ..narrow };
        assert_eq!([grid(wide, &rows()).lines().count(), grid(Page::PLAIN, &rows()).lines().count()], [2, 2]);
    }
}
