use super::{UndecodableLimit, UndecodableWindow};

fn window() -> UndecodableWindow {
    UndecodableWindow::new(UndecodableLimit::default())
}

fn push_undecodable(window: &mut UndecodableWindow, records: usize, keys: usize) {
    for record in 0..records {
        window.push(Some(format!("key-{}", record % keys).as_bytes()));
    }
}

fn push_good(window: &mut UndecodableWindow, records: usize) {
    for _ in 0..records {
        window.push(None);
    }
}

#[test]
fn a_partition_that_is_all_undecodable_stops_at_a_hundred_records_of_ten_keys() {
    let mut window = window();
    push_undecodable(&mut window, 99, 10);
    assert!(!window.is_exceeded());
    push_undecodable(&mut window, 1, 10);
    assert!(window.is_exceeded());
}

#[test]
fn few_keys_never_stop_it() {
    let mut window = window();
    push_undecodable(&mut window, 5_000, 9);
    assert!(!window.is_exceeded());
    assert_eq!(window.undecodable(), 1_000);
}

#[test]
fn a_minority_never_stops_it() {
    let mut window = window();
    push_good(&mut window, 501);
    push_undecodable(&mut window, 499, 50);
    assert!(!window.is_exceeded());
    push_undecodable(&mut window, 1, 50);
    assert!(window.is_exceeded(), "500 of the last 1,000");
}

#[test]
fn what_leaves_the_window_is_forgotten_keys_and_all() {
    let mut window = window();
    push_undecodable(&mut window, 200, 20);
    assert!(window.is_exceeded());
    push_good(&mut window, 1_000);
    assert!(!window.is_exceeded());
    assert_eq!(
        (window.undecodable(), window.records(), window.keys.len()),
        (0, 1_000, 0)
    );
}

#[test]
fn the_limit_is_configurable() {
    let limit = UndecodableLimit {
        window: 10,
        records: 2,
        percent: 20,
        keys: 1,
    };
    let mut window = UndecodableWindow::new(limit);
    push_good(&mut window, 8);
    push_undecodable(&mut window, 1, 1);
    assert!(!window.is_exceeded());
    push_undecodable(&mut window, 1, 1);
    assert!(window.is_exceeded());
}
