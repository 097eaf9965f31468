import { Button, Group, Stack, Text } from '@mantine/core'
import { useMutation } from '@tanstack/react-query'
import { useState } from 'react'
import { ActModal } from '../../act/act-modal.tsx'
import { Conflict } from '../../act/conflict.tsx'
import { newIdempotencyKey } from '../../act/idempotency-key.ts'
import { ApiError } from '../../api/api-error.ts'
import { type Answer, type AnswerOf, call, type OperationId } from '../../api/client.ts'
import { refetchAll } from '../../api/queries.ts'
import { Failure } from '../../components/failure.tsx'
import { operations } from '../operations.gen.ts'
import type { Act } from './act.ts'

export function ActDialog<Id extends OperationId, R, Form extends object>({
  act,
  close,
}: {
  act: Act<Id, R, Form>
  close: () => void
}) {
  return (
    <ActModal act={act} close={close}>
      {(finish, onActing) => <Proposal act={act} close={close} finish={finish} onActing={onActing} />}
    </ActModal>
  )
}

function Proposal<Id extends OperationId, R, Form extends object>({
  act,
  close,
  finish,
  onActing,
}: {
  act: Act<Id, R, Form>
  close: () => void
  finish: (answer: AnswerOf<Id>) => void
  onActing: (isActing: boolean) => void
}) {
  const { operation, path } = act
  const [base, setBase] = useState(act.base.loaded)
  const [edits, setEdits] = useState<Partial<Form>>({})
  const [conflict, setConflict] = useState<Answer<R>>()
  const [idempotencyKey] = useState(newIdempotencyKey)
  const loaded = base.data
  // Fields that were not edited follow the loaded resource, even after a conflict.
  const form: Form = { ...act.form(loaded), ...edits }
  const body = act.body(form, loaded)
  const acting = useMutation({
    // The response may contain a secret, and the secret must not outlive the dialog.
    gcTime: 0,
    mutationFn: async () => {
      try {
        return await call(operation, {
          path,
          version: base.version,
          ...(operations[operation]?.[0] !== 'DELETE' && { body }),
          ...(operations[operation]?.[0] === 'POST' && { idempotencyKey }),
        })
      } catch (error) {
        if (error instanceof ApiError && error.status === 412 && act.base.refetch) {
          setConflict(await act.base.refetch())
        }
        throw error
      }
    },
    onMutate: () => onActing(true),
    onSettled: () => onActing(false),
    onSuccess: (answer) => {
      void refetchAll()
      finish(answer)
    },
  })

  if (conflict) {
    const resume = () => {
      setBase(conflict)
      setConflict(undefined)
      acting.reset()
    }
    return <Conflict by="Another member" resume={resume} close={close} />
  }
  const mayAct = body !== undefined && !acting.isPending
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (mayAct) acting.mutate()
      }}
    >
      <Stack>
        {act.consequences && <Text component="div">{act.consequences}</Text>}
        {act.fields?.({ form, set: (part) => setEdits({ ...edits, ...part }), loaded })}
        <Failure of={acting.error} />
        <Group justify="flex-end">
          <Button
            variant="default"
            onClick={close}
            disabled={acting.isPending}
            {...(!act.fields && { 'data-autofocus': true })}
          >
            Cancel
          </Button>
          <Button
            type="submit"
            loading={acting.isPending}
            disabled={!mayAct}
            color={act.isDangerous ? 'red.9' : undefined}
          >
            {act.button}
          </Button>
        </Group>
      </Stack>
    </form>
  )
}
