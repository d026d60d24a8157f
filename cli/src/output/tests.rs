use super::*;

#[test]
fn columns_are_aligned_and_lines_end_without_blanks() {
    let mut table = Table::new(&["A", "LONG"]);
    table.row(["x".to_owned(), "y".to_owned()]);
    table.row(["wide cell".to_owned(), String::new()]);
    assert_eq!(table.render(), "A          LONG\nx          y\nwide cell\n");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let mut table = Table::new(&["A"]);
    table.row(["\u{1b}[31mred\n".to_owned()]);
    assert!(!table.render().contains('\u{1b}'));
    assert_eq!(table.render().lines().count(), 2);
}

#[test]
fn times_are_utc() {
    assert_eq!(utc(0), "1970-01-01 00:00:00Z");
    assert_eq!(utc(951_827_696_000), "2000-02-29 12:34:56Z");
    assert_eq!(utc(1_709_164_800_000), "2024-02-29 00:00:00Z");
    assert_eq!(utc(1_735_689_599_999), "2024-12-31 23:59:59Z");
    assert_eq!(utc(4_107_542_400_000), "2100-03-01 00:00:00Z");
}
