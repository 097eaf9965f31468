import manifest from '../../package.json' with { type: 'json' }
import { command, print } from './command.ts'

export const version = command('version', {
  async ''({ json }) {
    print(
      json,
      { version: manifest.version, node: process.versions.node },
      () => `postern ${manifest.version}`,
    )
  },
})
