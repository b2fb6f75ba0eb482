# All of one record.
. ./argument.sh
args=$(cat)
awk -F, -v id="$(argument record_id)" '
	$1 == id { printf "{\"id\":\"%s\",\"name\":\"%s\",\"status\":\"%s\",\"logins\":%d,\"plan\":\"%s\"}\n", $1, $2, $3, $4, $5; found = 1 }
	END { if (!found) { print "There is no record with the ID " id "." > "/dev/stderr"; exit 1 } }' users.csv
