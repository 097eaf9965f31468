import { Button, Group, Stack, Stepper, Text } from '@mantine/core'
import { useLayoutEffect, useRef, useState } from 'react'
import { ActModal, useIsNarrow } from '../../act/act-modal.tsx'
import { resolve } from '../../act/base.ts'
import { Conflict } from '../../act/conflict.tsx'
import type { AnswerOf } from '../../api/client.ts'
import { Failure } from '../../components/failure.tsx'
import type { Act } from './act.ts'
import { ChangedFields } from './changed-fields.tsx'
import type { MutationId } from './mutation.ts'
import { PreviewPanel } from './preview.tsx'
import { ReasonField } from './reason-field.tsx'
import { useProposal } from './use-proposal.ts'

export function ActDialog<Id extends MutationId, R, Form extends object>({
  act,
  close,
}: {
  act: Act<Id, R, Form>
  close: () => void
}) {
  return (
    <ActModal act={act} size={(act.steps?.length ?? 0) > 1 ? 'xl' : 'lg'} close={close}>
      {(finish, onActing) => <Proposal act={act} close={close} finish={finish} onActing={onActing} />}
    </ActModal>
  )
}

function Proposal<Id extends MutationId, R, Form extends object>({
  act,
  close,
  finish,
  onActing,
}: {
  act: Act<Id, R, Form>
  close: () => void
  finish: (data: AnswerOf<Id>) => void
  /** Called when the mutation starts and ends. */
  onActing: (isActing: boolean) => void
}) {
  const proposal = useProposal(act, finish, onActing)
  const { form, set, loaded, preview, reason, setReason, conflict, failure, isActing } = proposal
  const steps = act.steps ?? []
  const [stage, setStage] = useState(0)
  const formElement = useRef<HTMLFormElement>(null)
  const shownStage = useRef(stage)
  // Moves the focus to the start of the next step, for keyboard users.
  useLayoutEffect(() => {
    if (shownStage.current !== stage) {
      formElement.current?.querySelector<HTMLElement>('input, [type="submit"]')?.focus()
    }
    shownStage.current = stage
  }, [stage])
  const isLast = steps.length < 2 || stage === steps.length
  const fields = (steps.length < 2 ? steps : steps.slice(stage, stage + 1)).map((step) => (
    <Stack key={step.title} gap="sm">
      {step.fields({ form, set, loaded })}
    </Stack>
  ))

  if (conflict) {
    const compare = act.base.compare ?? ((of: R) => of)
    return (
      <Conflict by="Another administrator" resume={proposal.resume} close={close}>
        <ChangedFields before={compare(loaded)} now={compare(conflict.data)} />
      </Conflict>
    )
  }
  return (
    <form
      ref={formElement}
      onSubmit={(event) => {
        event.preventDefault()
        if (!isLast) setStage(stage + 1)
        else if (proposal.mayAct) proposal.act()
      }}
    >
      <Stack>
        {steps.length > 1 && (
          <Progress titles={[...steps.map(({ title }) => title), 'Review']} at={stage} go={setStage} />
        )}
        {fields}
        {isLast && (
          <>
            <PreviewPanel query={preview} isComplete={proposal.isComplete} />
            <ReasonField
              value={reason}
              onChange={setReason}
              operation={proposal.operation}
              fields={proposal.fields}
              isRequired={proposal.isReasonRequired}
              isFirst={steps.length === 0 || act.focusesReason === true}
            />
          </>
        )}
        <Failure of={failure} />
        <Group justify="space-between">
          <Text c="dimmed" size="sm">
            {isLast && proposal.missing}
          </Text>
          <Group>
            {stage > 0 ? (
              <Button variant="default" onClick={() => setStage(stage - 1)} disabled={isActing}>
                Back
              </Button>
            ) : (
              <Button variant="default" onClick={close} disabled={isActing}>
                Cancel
              </Button>
            )}
            {isLast ? (
              <Button
                type="submit"
                loading={isActing}
                disabled={!proposal.mayAct}
                color={resolve(act.isDangerous, form, loaded) ? 'red.9' : undefined}
              >
                {resolve(act.button, form, loaded)}
              </Button>
            ) : (
              <Button type="submit">Next</Button>
            )}
          </Group>
        </Group>
      </Stack>
    </form>
  )
}

/** The steps of the wizard; earlier steps can be clicked. */
function Progress({ titles, at, go }: { titles: string[]; at: number; go: (stage: number) => void }) {
  const isNarrow = useIsNarrow()
  if (isNarrow) {
    return (
      <Text size="sm" c="dimmed">
        Step {at + 1} of {titles.length}: {titles[at]}
      </Text>
    )
  }
  return (
    <Stepper active={at} onStepClick={(step) => step < at && go(step)} size="xs">
      {titles.map((title) => (
        <Stepper.Step key={title} label={title} />
      ))}
    </Stepper>
  )
}
