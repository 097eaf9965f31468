import { Modal, TextInput, VisuallyHidden } from '@mantine/core'
import { type ClipboardEvent, type KeyboardEvent, useEffect, useId, useState } from 'react'
import type { PaletteProps } from './palette.tsx'
import type { Choice } from './palette-choice.ts'
import classes from './palette-dialog.module.css'

/**
 * The command palette: a combobox whose list is always open (WAI-ARIA Authoring Practices, "Combobox"). The focus
 * stays in the field; arrow keys move the selection, Enter chooses the selected entry, and Escape closes the
 * palette. The entrance provides the choices.
 */
export function PaletteDialog({
  typed,
  setTyped,
  close,
  choices,
  isSearching = false,
  failure,
  placeholder,
  onPaste,
}: PaletteProps & {
  choices: Choice[]
  isSearching?: boolean
  failure?: string | undefined
  placeholder: string
  onPaste?: (event: ClipboardEvent) => void
}) {
  const id = useId()
  // By key, so that the selection is kept when the list changes as results arrive.
  const [activeKey, setActiveKey] = useState<string>()
  const index = Math.max(
    0,
    choices.findIndex(({ key }) => key === activeKey),
  )
  const active = choices[index]
  const idOf = (choice: Choice) => `${id}-${choice.key}`

  const select = (choice: Choice | undefined) => {
    if (!choice) return
    close()
    choice.select()
  }
  const move = (event: KeyboardEvent) => {
    const last = choices.length - 1
    const next = {
      ArrowDown: index === last ? 0 : index + 1,
      ArrowUp: index === 0 ? last : index - 1,
      PageDown: Math.min(last, index + 8),
      PageUp: Math.max(0, index - 8),
    }[event.key]
    if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
      event.preventDefault()
      select(active)
    } else if (next !== undefined) {
      event.preventDefault()
      setActiveKey(choices[next]?.key)
    }
  }
  const activeId = active && idOf(active)
  useEffect(() => {
    if (activeId) document.getElementById(activeId)?.scrollIntoView({ block: 'nearest' })
  }, [activeId])

  return (
    <Modal
      opened
      onClose={close}
      withCloseButton={false}
      size="lg"
      padding={0}
      yOffset="12vh"
      attributes={{ content: { 'aria-label': 'Jump to' } }}
      transitionProps={{ duration: 0 }}
    >
      <TextInput
        value={typed}
        onChange={(event) => {
          setTyped(event.currentTarget.value)
          setActiveKey(undefined)
        }}
        onKeyDown={move}
        onPaste={onPaste}
        placeholder={placeholder}
        variant="unstyled"
        size="lg"
        px="md"
        className={classes.field ?? ''}
        maxLength={100}
        autoComplete="off"
        spellCheck={false}
        // Focuses the field on mount, before the dialog's focus trap does.
        autoFocus
        data-autofocus
        role="combobox"
        aria-label="Jump to"
        aria-autocomplete="list"
        aria-expanded={choices.length > 0}
        aria-controls={choices.length > 0 ? `${id}-list` : undefined}
        aria-activedescendant={activeId}
      />
      {choices.length > 0 ? (
        <div role="listbox" id={`${id}-list`} aria-label="Results" className={classes.list}>
          {[...Map.groupBy(choices, ({ group }) => group)].map(([group, members], n) => (
            // biome-ignore lint/a11y/useSemanticElements: a fieldset is not allowed in a listbox.
            <div key={group} role="group" aria-labelledby={`${id}-group-${n}`}>
              <div id={`${id}-group-${n}`} className={classes.group}>
                {group}
              </div>
              {members.map((choice) => (
                <Option
                  key={choice.key}
                  id={idOf(choice)}
                  choice={choice}
                  isActive={choice === active}
                  activate={() => setActiveKey(choice.key)}
                  select={() => select(choice)}
                />
              ))}
            </div>
          ))}
        </div>
      ) : (
        <div className={classes.nothing}>
          {failure ?? (isSearching ? 'Searching…' : 'No results. Try fewer letters.')}
        </div>
      )}
      <VisuallyHidden role="status">
        {isSearching ? '' : choices.length === 1 ? '1 result' : `${choices.length} results`}
      </VisuallyHidden>
    </Modal>
  )
}

function Option({
  id,
  choice: { label, note },
  isActive,
  activate,
  select,
}: {
  id: string
  choice: Choice
  isActive: boolean
  activate: () => void
  select: () => void
}) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the focus and handles the keyboard.
    // biome-ignore lint/a11y/useFocusableInteractive: as above.
    <div
      role="option"
      id={id}
      aria-selected={isActive}
      className={classes.option}
      onMouseMove={activate}
      onClick={select}
    >
      <span className={classes.label}>{label}</span>
      {note && <span className={classes.note}>{note}</span>}
    </div>
  )
}
