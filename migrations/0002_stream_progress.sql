-- How far each partition is folded, and the records that the fold refused.

CREATE TABLE stream_progress (
    topic           text        NOT NULL,
    partition       integer     NOT NULL CHECK (partition >= 0),
    epoch           bigint      NOT NULL,
    next_offset     bigint      NOT NULL CHECK (next_offset >= 0),
    last_record_crc bigint,
    updated_at      timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic, partition)
) WITH (
    -- A few rows, each updated with every batch: much room for HOT updates, and a vacuum by count, not by share.
    fillfactor = 20,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);

COMMENT ON TABLE stream_progress IS
    'one row for each partition; its row lock serialises the batches, its epoch fences earlier owners';
COMMENT ON COLUMN stream_progress.next_offset IS
    'the first offset that is not folded yet; moves only in the transaction that folds what is before it';
COMMENT ON COLUMN stream_progress.last_record_crc IS
    'CRC-32 of the last folded record, to notice a topic that was deleted and created again';

CREATE TABLE quarantined_records (
    topic         text        NOT NULL,
    partition     integer     NOT NULL,
    record_offset bigint      NOT NULL,
    record_key    bytea       NOT NULL,
    reason        text        NOT NULL,
    detail        text        NOT NULL,
    raw           bytea,
    raw_length    bigint      NOT NULL,
    raw_sha256    bytea       NOT NULL CHECK (octet_length(raw_sha256) = 32),
    recorded_at   timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (topic, partition, record_offset)
);

CREATE INDEX quarantined_records_of_key ON quarantined_records (record_key);
-- What the cap of a key counts: a bounded number of rows for each key.
CREATE INDEX quarantined_records_kept_raw ON quarantined_records (record_key) WHERE raw IS NOT NULL;

COMMENT ON TABLE quarantined_records IS
    'records that the fold refused; the partition moved on';
COMMENT ON COLUMN quarantined_records.record_key IS
    'the record''s key; a key longer than 256 bytes is replaced by "sha256:" and its SHA-256';
COMMENT ON COLUMN quarantined_records.raw IS
    'the record''s value; NULL once a key has used up its share, and when its session is erased';
