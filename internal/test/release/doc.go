// Package release tests scripts/release and scripts/try-install in copies of the project.
package release
