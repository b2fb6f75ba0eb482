// Package core has the tests of package pawl that are about more than one of its files: campaigns,
// properties and recorded corpora, the golden JSON forms, adversaries, and benchmarks. A test of
// one file stands next to the file. Both import package runtest, which has what they share.
package core
