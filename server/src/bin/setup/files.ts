import { chmod, chown, mkdir, readFile, rename, writeFile } from 'node:fs/promises'

/** Writes the files that `postern setup` creates, and decides what happens to existing files. */
export class SetupFiles {
  readonly #group: number
  readonly #report: (line: string) => void

  constructor(group: number, report: (line: string) => void) {
    this.#group = group
    this.#report = report
  }

  /** Creates a directory that only root and the service can read. */
  async folder(path: string): Promise<void> {
    await mkdir(path, { recursive: true })
    await chown(path, 0, this.#group)
    await chmod(path, 0o750)
  }

  /** Writes the settings. The caller has checked that an existing file contains none, as that of a new package. */
  async writeSettings(path: string, text: string): Promise<void> {
    await writeFile(path, text, { mode: 0o640 })
    await chown(path, 0, this.#group)
    await chmod(path, 0o640)
    this.#report(`wrote    ${path}`)
  }

  /** Writes a secret, unless the file already exists. */
  async write(path: string, text: string): Promise<void> {
    if (!(await this.writeForRoot(path, text))) return
    await chown(path, 0, this.#group)
    await chmod(path, 0o640)
  }

  /** Writes a secret that the service must not be able to read. Returns false if the file already exists. */
  async writeForRoot(path: string, text: string): Promise<boolean> {
    try {
      // Created so that only root can read it; write() then gives the group access.
      await writeFile(path, text, { flag: 'wx', mode: 0o600 })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      this.#report(`kept     ${path}`)
      return false
    }
    this.#report(`wrote    ${path}`)
    return true
  }

  /** Writes a file that Postern owns and overwrites. Operators put their own changes in separate files. */
  async replace(path: string, text: string): Promise<void> {
    if ((await contentOf(path)) === text) return this.#report(`kept     ${path}`)
    await writeFile(path, text, { mode: 0o644 })
    this.#report(`wrote    ${path}`)
  }

  /**
   * Writes a file that belongs to another program. The first run renames the original file. If the file was edited
   * after that run, it is left unchanged.
   */
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
