-- Who builds a store, so that of two that do, the earlier one changes nothing any more.

ALTER TABLE store_rebuilds ADD COLUMN epoch bigint NOT NULL DEFAULT 1;

COMMENT ON COLUMN store_rebuilds.epoch IS
    'raised by each run that goes on; what an earlier one still writes is refused';
