import { type FileHandle, open } from 'node:fs/promises'

/** A log of responses, flushed to disk before the client continues. Concurrent writes share one flush. */
export class Ledger {
  readonly #file: FileHandle
  #waiting: { line: string; done: () => void; fail: (error: unknown) => void }[] = []
  #running = false

  private constructor(file: FileHandle) {
    this.#file = file
  }

  static async open(path: string): Promise<Ledger> {
    return new Ledger(await open(path, 'a'))
  }

  write(entry: object): Promise<void> {
    return new Promise((done, fail) => {
      this.#waiting.push({ line: `${JSON.stringify(entry)}\n`, done, fail })
      if (!this.#running) void this.#run()
    })
  }

  async #run(): Promise<void> {
    this.#running = true
    while (this.#waiting.length > 0) {
      const group = this.#waiting.splice(0)
      try {
        await this.#file.write(group.map(({ line }) => line).join(''))
        await this.#file.datasync()
        for (const { done } of group) done()
      } catch (error) {
        for (const { fail } of group) fail(error)
      }
    }
    this.#running = false
  }

  close(): Promise<void> {
    return this.#file.close()
  }
}
