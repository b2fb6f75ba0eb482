# Completion of pawl for fish, printed by: pawl completion fish
function __pawl_complete
	set -l words (commandline -opc)
	set -e words[1]
	set -l current (commandline -ct)
	for line in (command pawl __complete fish $words "$current" 2>/dev/null)
		switch $line
			case ':files' ':dirs'
				set -l flag (string match -r -- '^--[^=]*=' $current)
				set -l paths (string replace -r -- '^--[^=]*=' '' $current)
				if test $line = ':dirs'
					set paths (__fish_complete_directories "$paths")
				else
					set paths (__fish_complete_path "$paths")
				end
				string replace -r -- '^' "$flag" $paths
			case ':*'
			case '*'
				echo $line
		end
	end
end
complete -c pawl -f -k -a '(__pawl_complete)'
