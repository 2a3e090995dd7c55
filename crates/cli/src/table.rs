//! Tables without frames, as the summaries of runs have them.

use comfy_table::{Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use report::Page;

/// Rows with their columns side by side, each line two cells in. Columns in `right` stand to the right.
pub(crate) fn table(page: Page, rows: &[Vec<String>], right: &[usize]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(page.width as u16 - 2).force_no_tty();
    for row in rows {
        table.add_row(row.iter().enumerate().map(|(column, text)| {
            let side = if right.contains(&column) { CellAlignment::Right } else { CellAlignment::Left };
            Cell::new(text).set_alignment(side)
        }));
    }
    if let Some(names) = table.column_mut(0) {
        // A name is read whole; figures beside it break where they must.
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
    table.lines().map(|line| format!(" {}\n", line.trim_end())).collect()
}
