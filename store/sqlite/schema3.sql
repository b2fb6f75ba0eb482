-- Version 3: artifacts, what was too large for a result.

create table artifacts (
	n integer primary key autoincrement,
	tenant text not null, user text not null, thread text not null, run text not null, key text not null,
	size integer not null, mime text not null, text blob not null, data blob not null,
	unique (tenant, user, thread, run, key)
) strict;
create index artifacts_by_age on artifacts (tenant, user, thread, n, size);
