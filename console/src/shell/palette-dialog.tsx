import { Modal, TextInput, VisuallyHidden } from '@mantine/core'
import { type KeyboardEvent, useEffect, useId, useState } from 'react'
import { type Choice, useChoices } from './palette-choices.ts'
import classes from './palette-dialog.module.css'

/**
 * Jump anywhere, or do something, by a few letters: a combobox whose list is always open (WAI-ARIA Authoring Practices,
 * "Combobox"). The focus stays in the field; arrow keys move the choice, Enter takes it, Escape closes.
 */
export function PaletteDialog({ close }: { close: () => void }) {
  const id = useId()
  const [typed, setTyped] = useState('')
  // By its key: the list changes while answers come in, and what was chosen stays chosen.
  const [chosen, setChosen] = useState<string>()
  const { choices, isAsking, failure } = useChoices(typed)
  const place = Math.max(
    0,
    choices.findIndex(({ key }) => key === chosen),
  )
  const active = choices[place]
  const idOf = (choice: Choice) => `${id}-${choice.key}`

  const take = (choice: Choice | undefined) => {
    if (!choice) return
    close()
    choice.take()
  }
  const move = (event: KeyboardEvent) => {
    const last = choices.length - 1
    const next = {
      ArrowDown: place === last ? 0 : place + 1,
      ArrowUp: place === 0 ? last : place - 1,
      PageDown: Math.min(last, place + 8),
      PageUp: Math.max(0, place - 8),
    }[event.key]
    if (event.key === 'Enter' && !event.nativeEvent.isComposing) {
      event.preventDefault()
      take(active)
    } else if (next !== undefined) {
      event.preventDefault()
      setChosen(choices[next]?.key)
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
          setChosen(undefined)
        }}
        onKeyDown={move}
        placeholder="A project, domain, address or person, or what to do"
        variant="unstyled"
        size="lg"
        px="md"
        className={classes.field ?? ''}
        maxLength={100}
        autoComplete="off"
        spellCheck={false}
        // At once, and not when the dialog gets to it: a letter typed by then would go elsewhere.
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
        <div role="listbox" id={`${id}-list`} aria-label="Choices" className={classes.list}>
          {[...Map.groupBy(choices, ({ group }) => group)].map(([group, members], n) => (
            // biome-ignore lint/a11y/useSemanticElements: a fieldset does not belong into a listbox.
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
                  choose={() => setChosen(choice.key)}
                  take={() => take(choice)}
                />
              ))}
            </div>
          ))}
        </div>
      ) : (
        <div className={classes.nothing}>
          {failure ?? (isAsking ? 'Looking…' : 'Nothing is called that. Try less of it.')}
        </div>
      )}
      <VisuallyHidden role="status">
        {isAsking ? '' : choices.length === 1 ? '1 choice' : `${choices.length} choices`}
      </VisuallyHidden>
    </Modal>
  )
}

function Option({
  id,
  choice: { label, note },
  isActive,
  choose,
  take,
}: {
  id: string
  choice: Choice
  isActive: boolean
  choose: () => void
  take: () => void
}) {
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keyboard is in the field, which has the focus.
    // biome-ignore lint/a11y/useFocusableInteractive: as above.
    <div
      role="option"
      id={id}
      aria-selected={isActive}
      className={classes.option}
      onMouseMove={choose}
      onClick={take}
    >
      <span className={classes.label}>{label}</span>
      {note && <span className={classes.note}>{note}</span>}
    </div>
  )
}
