package config

// Meaning is meaning, for the generated page.
var Meaning = meaning
