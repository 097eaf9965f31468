import { chmod, chown, mkdir, readFile, rename, writeFile } from 'node:fs/promises'

/** Files that `postern init` leaves on a machine, and what it does where one is there already. */
export class InitFiles {
  readonly #group: number
  readonly #tell: (line: string) => void

  constructor(group: number, tell: (line: string) => void) {
    this.#group = group
    this.#tell = tell
  }

  /** Nobody looks in but root and the service. */
  async folder(path: string): Promise<void> {
    await mkdir(path, { recursive: true })
    await chown(path, 0, this.#group)
    await chmod(path, 0o750)
  }

  /** A secret or a setting: what is there stays. */
  async write(path: string, text: string): Promise<void> {
    if (!(await this.writeForRoot(path, text))) return
    await chown(path, 0, this.#group)
    await chmod(path, 0o640)
  }

  /** A secret that the service itself must not have. False: it was there. */
  async writeForRoot(path: string, text: string): Promise<boolean> {
    try {
      // Made as root's alone, and opened to the group only then.
      await writeFile(path, text, { flag: 'wx', mode: 0o600 })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      this.#tell(`kept     ${path}`)
      return false
    }
    this.#tell(`wrote    ${path}`)
    return true
  }

  /** A file of the program's; what an operator changes about it is in a file of theirs. */
  async replace(path: string, text: string): Promise<void> {
    if ((await contentOf(path)) === text) return this.#tell(`kept     ${path}`)
    await writeFile(path, text, { mode: 0o644 })
    this.#tell(`wrote    ${path}`)
  }

  /** A file of another program's: what was there is put aside, once. Who has changed ours since keeps it. */
  async takeOver(path: string, text: string): Promise<void> {
    const aside = `${path}.before-postern`
    const present = await contentOf(path)
    if (present === text || (present !== undefined && (await contentOf(aside)) !== undefined))
      return this.#tell(`kept     ${path}`)
    if (present !== undefined) await rename(path, aside)
    await writeFile(path, text, { mode: 0o644 })
    this.#tell(present === undefined ? `wrote    ${path}` : `wrote    ${path}; what was there is ${aside}`)
  }
}

const contentOf = (path: string): Promise<string | undefined> =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
