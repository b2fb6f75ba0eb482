-- Version 1. A change is a new file of statements, never an edit of this one.

create table threads (
	tenant text not null, user text not null, id text not null,
	title text not null, meta text, messages integer not null default 0, created integer not null, updated integer not null,
	primary key (tenant, user, id)
) strict, without rowid;

create table messages (
	n integer primary key,
	tenant text not null, user text not null, thread text not null, seq integer not null,
	body text not null, time integer not null,
	unique (tenant, user, thread, seq),
	foreign key (tenant, user, thread) references threads (tenant, user, id) on delete cascade
) strict;

create table documents (
	n integer primary key,
	tenant text not null, user text not null, thread text not null, id text not null,
	title text not null, source text not null, kind text not null, digest text not null, meta text,
	chunks integer not null, created integer not null, updated integer not null,
	unique (tenant, user, thread, id)
) strict;

create table chunks (
	n integer primary key,
	document integer not null references documents (n) on delete cascade,
	tenant text not null, user text not null, thread text not null,
	place integer not null, heading text not null, body text not null,
	model text, vector blob,
	unique (document, place)
) strict;
create index chunks_by_scope on chunks (tenant, user, model);

create table memories (
	n integer primary key autoincrement,
	tenant text not null, user text not null, thread text not null,
	body text not null, folded text not null, source text not null, model text, vector blob, created integer not null,
	unique (tenant, user, thread, folded)
) strict;

create table skills (
	n integer primary key,
	tenant text not null, user text not null, thread text not null, name text not null, version integer not null, newest integer not null,
	description text not null, body text not null, more text not null, created integer not null, updated integer not null,
	unique (tenant, user, thread, name, version)
) strict;

create table schedules (
	n integer primary key autoincrement,
	tenant text not null, user text not null, thread text not null, id text not null,
	name text not null, description text not null, spec text not null, zone text not null, task text, misfire text not null,
	enabled integer not null, next integer not null, version integer not null, created integer not null, updated integer not null,
	unique (tenant, user, thread, id)
) strict;
create index schedules_due on schedules (next) where enabled = 1 and next > 0;

create table occurrences (
	schedule integer not null references schedules (n) on delete cascade,
	due integer not null,
	owner text not null, fence integer not null, until integer not null, state text not null,
	run text not null default '', text text not null default '', began integer not null default 0, ended integer not null default 0,
	primary key (schedule, due)
) strict, without rowid;

-- Traces: runs holds the heads of observed runs (store.Traces), events their events. Durable runs are journals, version 2.
create table runs (
	n integer primary key,
	tenant text not null, user text not null, thread text not null, id text not null,
	started integer not null, body text not null,
	unique (tenant, user, thread, id)
) strict;
create index runs_by_start on runs (tenant, user, started desc, id);

create table events (
	run integer not null references runs (n) on delete cascade,
	seq integer not null, body text not null,
	primary key (run, seq)
) strict, without rowid;

-- What is searched by words. The tables have no content of their own; a row's number is that of the row it is for.
create virtual table messages_words using fts5 (text, content='', contentless_delete=1, tokenize="porter unicode61 remove_diacritics 2");
create virtual table chunks_words using fts5 (text, content='', contentless_delete=1, tokenize="porter unicode61 remove_diacritics 2");
create virtual table memories_words using fts5 (text, content='', contentless_delete=1, tokenize="porter unicode61 remove_diacritics 2");
create virtual table skills_words using fts5 (text, content='', contentless_delete=1, tokenize="porter unicode61 remove_diacritics 2");

create trigger messages_gone after delete on messages begin delete from messages_words where rowid = old.n; end;
create trigger chunks_gone after delete on chunks begin delete from chunks_words where rowid = old.n; end;
create trigger memories_gone after delete on memories begin delete from memories_words where rowid = old.n; end;
create trigger skills_gone after delete on skills begin delete from skills_words where rowid = old.n; end;
