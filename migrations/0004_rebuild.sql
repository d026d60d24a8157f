-- A store that is being built from the topic, or from the archive and the rest of the topic. No row: it was not built so.

CREATE TABLE store_rebuilds (
    topic         text        PRIMARY KEY,
    from_archive  boolean     NOT NULL,
    incarnation   integer     NOT NULL CHECK (incarnation > 0),
    states_loaded boolean     NOT NULL DEFAULT false,
    begun_at      timestamptz NOT NULL DEFAULT now(),
    finished_at   timestamptz
);

COMMENT ON TABLE store_rebuilds IS
    'how far the building of this store has come; until finished_at is set no service may use it';
COMMENT ON COLUMN store_rebuilds.states_loaded IS
    'every state of the archive is in: from then on only records of the topic change sessions';

CREATE TABLE store_rebuild_partitions (
    topic        text    NOT NULL,
    partition    integer NOT NULL CHECK (partition >= 0),
    start_offset bigint  NOT NULL CHECK (start_offset >= 0),
    PRIMARY KEY (topic, partition)
);

COMMENT ON TABLE store_rebuild_partitions IS
    'from which offset on records of the topic are folded: 0, or the offset below which the states of the archive hold
everything';
