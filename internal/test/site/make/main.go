// Command make writes the web site of the documents into a folder.
package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/pawl-go/pawl/internal/test/site"
)

func main() {
	out := flag.String("out", "site", "the folder for the files")
	module := flag.String("module", ".", "the folder of the module")
	flag.Parse()
	files, err := site.Site(os.DirFS(*module))
	if err != nil {
		log.Fatal(err)
	}
	for name, data := range files {
		name = filepath.Join(*out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			log.Fatal(err)
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(len(files), "files in", *out)
}
