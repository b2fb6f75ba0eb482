-- Version 2: durable runs are journals (store.Journal); the table runs of version 1 holds traces.

create table journals (
	n integer primary key,
	tenant text not null, user text not null, thread text not null, id text not null,
	agent text not null, task text not null, state text not null, summary text,
	owner text not null, fence integer not null, until integer not null,
	records integer not null, head text not null, created integer not null, updated integer not null,
	unique (tenant, user, thread, id)
) strict;
create index journals_open on journals (updated) where state = 'open';

-- A large body stands in bodies, by its digest, once a run.
create table records (
	journal integer not null references journals (n) on delete cascade,
	seq integer not null, key text not null, kind text not null, fence integer not null, at integer not null, elapsed integer not null,
	body text, digest text, hash text not null,
	primary key (journal, seq), unique (journal, key)
) strict, without rowid;

create table bodies (
	journal integer not null references journals (n) on delete cascade,
	digest text not null, body text not null,
	primary key (journal, digest)
) strict;
