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
