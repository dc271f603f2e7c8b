// Answer queries as the site does: with its own worker and index. Arguments: the folder of the site; queries come as a
// JSON list on standard input, and a list of pages for each goes to standard output, best first.
import { readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import vm from "node:vm"

const site = process.argv[2]
const workers = join(site, "assets/javascripts/workers")
const worker = readdirSync(workers).find(name => /^search\..*\.js$/.test(name))
const index = JSON.parse(readFileSync(join(site, "search/search_index.json"), "utf8"))
const waiting = []
const self = {
  addEventListener: (kind, handle) => { self.handle = handle },
  postMessage: message => waiting.shift()?.(message),
  importScripts: () => {},
  location: { href: "http://127.0.0.1/" },
}
const context = vm.createContext(Object.assign(self, { self, console, URL, setTimeout, performance }))
vm.runInContext(readFileSync(join(workers, worker), "utf8"), context)

const ask = message => new Promise(resolve => { waiting.push(resolve); self.handle({ data: message }) })

await ask({ type: 0, data: { ...index, options: { suggest: false } } })
const answers = []
for (const query of JSON.parse(readFileSync(0, "utf8"))) {
  const { data } = await ask({ type: 2, data: query })
  answers.push(data.items.map(item => item[0].location))
}
console.log(JSON.stringify(answers))
process.exit(0)
