use super::*;

const TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) fn standing(applied_seq: u64) -> Standing {
    Standing {
        session_generation: 3,
        erased: false,
        nonce: None,
        applied_seq,
        status: LifetimeStatus::Active,
        binding_generation: 3,
        binding_raised_age: Duration::from_secs(3600),
    }
}

pub(crate) fn facts(standing: Option<Standing>, next_offset: i64) -> Facts {
    Facts {
        standing,
        read_at: Instant::now(),
        next_offset,
        may_lack_binds: false,
    }
}

/// A read `seconds` after a fixed moment, of a generation that was raised at second `raised_at`.
fn read_at(seconds: u64, generation: u64, raised_at: u64, next_offset: i64) -> Facts {
    static START: std::sync::LazyLock<Instant> =
        std::sync::LazyLock::new(|| Instant::now() + Duration::from_secs(86_400));
    Facts {
        standing: Some(raised(generation, seconds - raised_at)),
        read_at: *START + Duration::from_secs(seconds),
        next_offset,
        may_lack_binds: false,
    }
}

fn nonce(fill: u8) -> WriterNonce {
    WriterNonce([fill; 16])
}

fn raised(generation: u64, age_seconds: u64) -> Standing {
    Standing {
        binding_generation: generation,
        binding_raised_age: Duration::from_secs(age_seconds),
        ..standing(0)
    }
}

#[test]
fn an_active_lifetime_of_this_writer_is_not_terminal() {
    assert_eq!(standing(1).terminal(3, Some(nonce(1))), None);
    let ended = Standing {
        status: LifetimeStatus::Ended,
        nonce: Some(nonce(1)),
        ..standing(1)
    };
    assert_eq!(ended.terminal(3, Some(nonce(1))), None);
}

#[test]
fn what_ends_a_writer_is_read_in_a_fixed_order() {
    let mut everything = Standing {
        erased: true,
        session_generation: 9,
        status: LifetimeStatus::Failed,
        nonce: Some(nonce(2)),
        ..standing(1)
    };
    assert_eq!(everything.terminal(3, Some(nonce(1))), Some(Terminal::NotFound));
    everything.erased = false;
    assert_eq!(
        everything.terminal(3, Some(nonce(1))),
        Some(Terminal::Superseded { current: 9 })
    );
    everything.session_generation = 3;
    assert_eq!(everything.terminal(3, Some(nonce(1))), Some(Terminal::Failed));
    everything.status = LifetimeStatus::Active;
    assert_eq!(
        everything.terminal(3, Some(nonce(1))),
        Some(Terminal::SecondWriter)
    );
    assert_eq!(everything.terminal(3, None), None);
}

#[test]
fn a_raised_generation_holds_back_until_it_lapses() {
    let mut watch = BindWatch::default();
    assert!(!watch.observe(3, &read_at(1, 4, 0, 100), TIMEOUT));
    assert!(watch.holds_back_log_acks(3, &raised(4, 1)));
    assert!(
        watch.observe(3, &read_at(6, 4, 0, 100), TIMEOUT),
        "the end is wanted after the time-out"
    );
    assert!(watch.holds_back_log_acks(3, &raised(4, 6)));
    watch.partition_end(4, 120);
    assert!(!watch.observe(3, &read_at(7, 4, 0, 119), TIMEOUT));
    assert!(watch.holds_back_log_acks(3, &raised(4, 7)));
    assert!(!watch.observe(3, &read_at(8, 4, 0, 120), TIMEOUT));
    assert!(!watch.holds_back_log_acks(3, &raised(4, 8)));
}

fn lapsed() -> BindWatch {
    let mut watch = BindWatch::default();
    watch.observe(3, &read_at(6, 4, 0, 0), TIMEOUT);
    watch.partition_end(4, 0);
    watch.observe(3, &read_at(7, 4, 0, 0), TIMEOUT);
    assert!(!watch.holds_back_log_acks(3, &raised(4, 7)));
    watch
}

#[test]
fn a_repeated_raise_starts_anew() {
    let mut watch = lapsed();
    watch.observe(3, &read_at(11, 4, 10, 0), TIMEOUT);
    assert!(watch.holds_back_log_acks(3, &raised(4, 1)));
    let mut watch = lapsed();
    assert!(
        watch.observe(3, &read_at(40, 4, 10, 0), TIMEOUT),
        "also when it is seen late"
    );
    assert!(watch.holds_back_log_acks(3, &raised(4, 30)));
}

#[test]
fn a_higher_raise_starts_anew() {
    let mut watch = lapsed();
    assert!(
        watch.holds_back_log_acks(3, &raised(5, 1)),
        "a read that the watch has not seen holds back too"
    );
    watch.observe(3, &read_at(20, 5, 10, 0), TIMEOUT);
    watch.partition_end(4, 0);
    watch.observe(3, &read_at(21, 5, 10, 0), TIMEOUT);
    assert!(
        watch.holds_back_log_acks(3, &raised(5, 11)),
        "an end that was wanted for another generation"
    );
}

#[test]
fn the_own_generation_holds_nothing_back() {
    let mut watch = BindWatch::default();
    assert!(!watch.observe(3, &facts(Some(raised(3, 9)), 0), TIMEOUT));
    assert!(!watch.holds_back_log_acks(3, &raised(3, 1)));
    assert!(!watch.observe(3, &facts(None, 0), TIMEOUT));
}
