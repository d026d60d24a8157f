//! What the engines do without Wakelog: the other half of each ratio.
//!
//! | module | baseline |
//! |---|---|
//! | [`producer`] | librdkafka with the settings of `libs/stream`, publishing the records that ingest makes |
//! | [`unnest`] | rows into a copy of the entries' table, in batches as large as the persister's |
//! | [`read`] | a streamed `SELECT` of the rows that a resume reads |

pub(crate) mod producer;
pub(crate) mod read;
pub(crate) mod unnest;
