// Exits if Node.js is older than the version that "engines" in package.json requires. The npm scripts also run this
// file first.
const needed = [24, 16]
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number)

if (major < needed[0] || (major === needed[0] && minor < needed[1])) {
  process.stderr.write(`Postern needs Node.js ${needed.join('.')} or newer; this is ${process.version}.\n`)
  process.exit(1)
}
