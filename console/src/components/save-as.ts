/** Saves a file that the browser already has. */
export function saveAs(file: Blob, name: string): void {
  const address = URL.createObjectURL(file)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  // By then the browser has started the download; the memory is freed before the window closes.
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}
