import { Button, FileButton, Group, Text, Textarea } from '@mantine/core'
import { useState } from 'react'

export interface ImportForm {
  csv: string
}

/** A longer file is not displayed, because the browser becomes slow. */
const shownCharacters = 200_000

/** A pasted list, or a file. */
export function ImportFields({
  form: { csv },
  set,
  hint,
}: {
  form: ImportForm
  set: (part: Partial<ImportForm>) => void
  hint: string
}) {
  const [file, setFile] = useState<string>()
  const choose = (chosen: File | null) => {
    if (!chosen) return
    setFile(chosen.name)
    void chosen.text().then((text) => set({ csv: text }))
  }
  const isLong = csv.length > shownCharacters
  return (
    <>
      <Textarea
        label="Addresses"
        description={hint}
        value={isLong ? '' : csv}
        onChange={(event) => {
          setFile(undefined)
          set({ csv: event.currentTarget.value })
        }}
        placeholder={isLong ? 'The file is too long to be displayed.' : 'someone@example.com'}
        minRows={5}
        maxRows={10}
        autosize
        spellCheck={false}
        autoComplete="off"
        data-autofocus
      />
      <Group gap="sm">
        <FileButton onChange={choose} accept=".csv,.txt,text/csv,text/plain">
          {(props) => (
            <Button variant="default" size="compact-sm" {...props}>
              Choose file
            </Button>
          )}
        </FileButton>
        <Text size="sm" c="dimmed" style={{ overflowWrap: 'anywhere' }}>
          {file ?? 'CSV or text, at most 10,000 lines'}
        </Text>
      </Group>
    </>
  )
}
