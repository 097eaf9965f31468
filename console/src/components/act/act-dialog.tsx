import { Alert, Button, Group, Modal, Stack, Stepper, Text } from '@mantine/core'
import { useMediaQuery } from '@mantine/hooks'
import { type ReactNode, useLayoutEffect, useRef, useState } from 'react'
import { Refusal } from '../../api/answer.ts'
import type { AnswerOf, MutationId } from '../../api/client.ts'
import { useIsSignInNeeded } from '../../api/gate.ts'
import { useTell } from '../told.tsx'
import type { Act } from './act.ts'
import { Conflict } from './conflict.tsx'
import { PreviewOf } from './preview.tsx'
import { ReasonField } from './reason-field.tsx'
import { secretOf, TellSecret } from './tell-secret.tsx'
import { useProposal } from './use-proposal.ts'

const narrow = '(max-width: 600px)'

export function ActDialog<Id extends MutationId, R, Form extends object>({
  act,
  close,
}: {
  act: Act<Id, R, Form>
  close: () => void
}) {
  const [answer, setAnswer] = useState<{ data: AnswerOf<Id> }>()
  const [isActing, setIsActing] = useState(false)
  const isSignInNeeded = useIsSignInNeeded()
  const tell = useTell()
  const isNarrow = useMediaQuery(narrow)

  const finish = (data: AnswerOf<Id>) => {
    act.done?.(data)
    tell(`Done: ${act.title}`)
    if (secretOf(data) !== undefined || act.result) setAnswer({ data })
    else close()
  }
  const secret = secretOf(answer?.data)
  const mayClose = answer ? secret === undefined : !isActing
  const shown = answer ? (
    secret === undefined ? (
      <Result close={close}>{act.result?.(answer.data)}</Result>
    ) : (
      <TellSecret secret={secret} close={close} />
    )
  ) : (
    <Proposal act={act} close={close} finish={finish} mind={setIsActing} />
  )
  return (
    <Modal
      opened
      onClose={close}
      // A secret is gone once the dialog is, and what is being done cannot be called back.
      closeOnEscape={mayClose && !isSignInNeeded}
      closeOnClickOutside={false}
      withCloseButton={mayClose}
      closeButtonProps={{ 'aria-label': 'Close' }}
      title={act.title}
      size={(act.steps?.length ?? 0) > 1 ? 'xl' : 'lg'}
      fullScreen={isNarrow ?? false}
    >
      {shown}
    </Modal>
  )
}

function Result({ children, close }: { children: ReactNode; close: () => void }) {
  return (
    <Stack>
      {children}
      <Group justify="flex-end">
        <Button onClick={close} autoFocus>
          Close
        </Button>
      </Group>
    </Stack>
  )
}

function Proposal<Id extends MutationId, R, Form extends object>({
  act,
  close,
  finish,
  mind,
}: {
  act: Act<Id, R, Form>
  close: () => void
  finish: (data: AnswerOf<Id>) => void
  /** Whether it is being done at this moment. */
  mind: (isActing: boolean) => void
}) {
  const proposal = useProposal(act, finish, mind)
  const { form, set, seen, preview, reason, setReason, conflict, failure, isActing } = proposal
  const steps = act.steps ?? []
  const [stage, setStage] = useState(0)
  const asked = useRef<HTMLFormElement>(null)
  const shownStage = useRef(stage)
  // Who goes on by keyboard is not to look for where the next step begins.
  useLayoutEffect(() => {
    if (shownStage.current !== stage) {
      asked.current?.querySelector<HTMLElement>('input, [type="submit"]')?.focus()
    }
    shownStage.current = stage
  }, [stage])
  const isLast = steps.length < 2 || stage === steps.length
  const fields = (steps.length < 2 ? steps : steps.slice(stage, stage + 1)).map((step) => (
    <Stack key={step.title} gap="sm">
      {step.fields({ form, set, seen })}
    </Stack>
  ))

  if (conflict) {
    const compare = act.base.compare ?? ((of: R) => of)
    return <Conflict before={compare(seen)} now={compare(conflict.data)} goOn={proposal.goOn} close={close} />
  }
  return (
    <form
      ref={asked}
      onSubmit={(event) => {
        event.preventDefault()
        if (!isLast) setStage(stage + 1)
        else if (proposal.mayAct) proposal.act()
      }}
    >
      <Stack>
        {steps.length > 1 && (
          <Progress
            titles={[...steps.map(({ title }) => title), 'Check and confirm']}
            at={stage}
            go={setStage}
          />
        )}
        {fields}
        {isLast && (
          <>
            <PreviewOf query={preview} isComplete={proposal.isComplete} />
            <ReasonField
              value={reason}
              onChange={setReason}
              isRequired={preview.data?.reason_required ?? false}
              isFirst={steps.length === 0}
            />
          </>
        )}
        {failure && (
          <Alert color="red" role="alert" title={titleOf(failure)}>
            {failure.message}
          </Alert>
        )}
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
                color={act.isDangerous ? 'red.9' : undefined}
              >
                {act.button}
              </Button>
            ) : (
              <Button type="submit">Go on</Button>
            )}
          </Group>
        </Group>
      </Stack>
    </form>
  )
}

/** How far one has come, and the way back. */
function Progress({ titles, at, go }: { titles: string[]; at: number; go: (stage: number) => void }) {
  const isNarrow = useMediaQuery(narrow)
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

const titleOf = (failure: Error): string =>
  failure instanceof Refusal && failure.isCertain
    ? 'This was not done'
    : 'It is not known whether this was done'
