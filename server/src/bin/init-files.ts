import { chmod, chown, mkdir, readFile, rename, writeFile } from 'node:fs/promises'

/** Writes the files of `postern init`, and decides what happens to files that exist already. */
export class InitFiles {
  readonly #group: number
  readonly #report: (line: string) => void

  constructor(group: number, report: (line: string) => void) {
    this.#group = group
    this.#report = report
  }

  /** A directory that only root and the service can read. */
  async folder(path: string): Promise<void> {
    await mkdir(path, { recursive: true })
    await chown(path, 0, this.#group)
    await chmod(path, 0o750)
  }

  /** A secret or a settings file: an existing file is kept. */
  async write(path: string, text: string): Promise<void> {
    if (!(await this.writeForRoot(path, text))) return
    await chown(path, 0, this.#group)
    await chmod(path, 0o640)
  }

  /** A secret that the service itself must not read. False: the file existed. */
  async writeForRoot(path: string, text: string): Promise<boolean> {
    try {
      // Created readable by root only; write() then gives the group access.
      await writeFile(path, text, { flag: 'wx', mode: 0o600 })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      this.#report(`kept     ${path}`)
      return false
    }
    this.#report(`wrote    ${path}`)
    return true
  }

  /** A file that Postern owns: it is overwritten. Operators put their changes into files of their own. */
  async replace(path: string, text: string): Promise<void> {
    if ((await contentOf(path)) === text) return this.#report(`kept     ${path}`)
    await writeFile(path, text, { mode: 0o644 })
    this.#report(`wrote    ${path}`)
  }

  /** A file of another program: the original is renamed once. A file that was edited since the first run is kept. */
  async takeOver(path: string, text: string): Promise<void> {
    const backup = `${path}.before-postern`
    const present = await contentOf(path)
    if (present === text || (present !== undefined && (await contentOf(backup)) !== undefined))
      return this.#report(`kept     ${path}`)
    if (present !== undefined) await rename(path, backup)
    await writeFile(path, text, { mode: 0o644 })
    this.#report(present === undefined ? `wrote    ${path}` : `wrote    ${path}; the original is ${backup}`)
  }
}

const contentOf = (path: string): Promise<string | undefined> =>
  readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
