// Package guide has the programs of docs/guide: one example a file, which the page shows as a
// command. Nothing imports this package.
package guide
