-- Version 1. A change is a new file of statements, never an edit of this one. VECTOR is the type of vectors: pgvector's where it is, else bytes.
-- Names are compared and ordered byte by byte, whatever the database's own order is; times are nanoseconds since 1970, 0 is none.

create text search dictionary words_stem (template = snowball, language = english);
create text search configuration words (parser = default);
alter text search configuration words add mapping for asciiword, word, numword, uint, int, float, sfloat with words_stem;

create table threads (
	tenant text collate "C" not null, userid text collate "C" not null, id text collate "C" not null,
	title text not null, meta text, messages integer not null default 0, created bigint not null, updated bigint not null,
	primary key (tenant, userid, id)
);

create table messages (
	n bigint generated always as identity primary key,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null, seq integer not null,
	body text not null, time bigint not null,
	unique (tenant, userid, thread, seq),
	foreign key (tenant, userid, thread) references threads (tenant, userid, id) on delete cascade
);

create table documents (
	n bigint generated always as identity primary key,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null, id text collate "C" not null,
	title text not null, source text not null, kind text not null, digest text not null, meta text,
	chunks integer not null, created bigint not null, updated bigint not null,
	unique (tenant, userid, thread, id)
);

create table chunks (
	n bigint generated always as identity primary key,
	document bigint not null references documents (n) on delete cascade,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null,
	place integer not null, heading text not null, body text not null,
	model text collate "C", dimensions integer, vector VECTOR,
	unique (document, place)
);
create index chunks_by_scope on chunks (tenant, userid, model);

create table memories (
	n bigint generated always as identity primary key,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null,
	body text not null, folded bytea not null, source text not null,
	model text collate "C", dimensions integer, vector VECTOR, created bigint not null,
	unique (tenant, userid, thread, folded)
);

create table skills (
	n bigint generated always as identity primary key,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null,
	name text collate "C" not null, version integer not null, newest boolean not null,
	description text not null, body text not null, more text not null, created bigint not null, updated bigint not null,
	unique (tenant, userid, thread, name, version)
);

create table schedules (
	n bigint generated always as identity primary key,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null, id text collate "C" not null,
	name text not null, description text not null, spec text not null, zone text not null, task text, misfire text not null,
	enabled boolean not null, next bigint not null, version bigint not null, created bigint not null, updated bigint not null,
	unique (tenant, userid, thread, id)
);
create index schedules_due on schedules (next) where enabled and next > 0;

create table occurrences (
	schedule bigint not null references schedules (n) on delete cascade,
	due bigint not null,
	owner text collate "C" not null, fence bigint not null, until bigint not null, state text not null,
	run text not null default '', text text not null default '', began bigint not null default 0, ended bigint not null default 0,
	primary key (schedule, due)
);

-- Traces: runs holds the heads of observed runs (store.Traces), events their events. Durable runs are journals.
create table runs (
	n bigint generated always as identity primary key,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null, id text collate "C" not null,
	started bigint not null, body text not null,
	unique (tenant, userid, thread, id)
);
create index runs_by_start on runs (tenant, userid, started desc, id);

create table events (
	run bigint not null references runs (n) on delete cascade,
	seq bigint not null, body text not null,
	primary key (run, seq)
);

create table artifacts (
	n bigint generated always as identity primary key,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null,
	run text collate "C" not null, key text collate "C" not null,
	mime text not null, text bytea not null, data bytea not null, size bigint not null,
	unique (tenant, userid, thread, run, key)
);

create index artifacts_by_age on artifacts (tenant, userid, thread, n, size);

-- Durable runs are journals (store.Journal); the table runs holds traces.
create table journals (
	n bigint generated always as identity primary key,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null, id text collate "C" not null,
	agent text not null, task text not null, state text not null, summary text,
	owner text collate "C" not null, fence bigint not null, until bigint not null,
	records bigint not null, head text not null, created bigint not null, updated bigint not null,
	unique (tenant, userid, thread, id)
);
create index journals_open on journals (updated) where state = 'open';

-- A large body stands in bodies, by its digest, once a run.
create table records (
	journal bigint not null references journals (n) on delete cascade,
	seq bigint not null, key text collate "C" not null, kind text not null, fence bigint not null, at bigint not null, elapsed bigint not null,
	body text, digest text, hash text not null,
	primary key (journal, seq), unique (journal, key)
);

create table bodies (
	journal bigint not null references journals (n) on delete cascade,
	digest text not null, body text not null,
	primary key (journal, digest)
);

-- What is searched by words: a row for each row that is found by them, with the number of its words. A table of its own is narrow, which is what
-- counting needs; the words stand outside of its rows.
create table messages_words (
	n bigint primary key references messages (n) on delete cascade,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null, size integer not null, words tsvector not null
) with (toast_tuple_target = 128);
create table chunks_words (
	n bigint primary key references chunks (n) on delete cascade,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null, size integer not null, words tsvector not null
) with (toast_tuple_target = 128);
create table memories_words (
	n bigint primary key references memories (n) on delete cascade,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null, size integer not null, words tsvector not null
) with (toast_tuple_target = 128);
create table skills_words (
	n bigint primary key references skills (n) on delete cascade,
	tenant text collate "C" not null, userid text collate "C" not null, thread text collate "C" not null, size integer not null, words tsvector not null
) with (toast_tuple_target = 128);

alter table messages_words alter column words set storage external;
alter table chunks_words alter column words set storage external;
alter table memories_words alter column words set storage external;
alter table skills_words alter column words set storage external;

create index messages_words_in on messages_words using gin (words);
create index chunks_words_in on chunks_words using gin (words);
create index memories_words_in on memories_words using gin (words);
create index skills_words_in on skills_words using gin (words);

-- How many texts a scope has, and how long they are, is read from here alone.
create index messages_words_whose on messages_words (tenant, userid, thread, size);
create index chunks_words_whose on chunks_words (tenant, userid, thread, size);
create index memories_words_whose on memories_words (tenant, userid, thread, size);
create index skills_words_whose on skills_words (tenant, userid, thread, size);
