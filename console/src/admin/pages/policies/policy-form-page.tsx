import { Alert, Button, Group, Stack, Text, Title } from '@mantine/core'
import { getRouteApi, useNavigate } from '@tanstack/react-router'
import { useMemo, useState } from 'react'
import { Conflict } from '../../../act/conflict.tsx'
import type { AnswerOf } from '../../../api/client.ts'
import { useOne } from '../../../api/queries.ts'
import { Failure } from '../../../components/failure.tsx'
import { To } from '../../../components/link.tsx'
import { PageHead } from '../../../components/page-head.tsx'
import { Loading, QueryState } from '../../../components/states.tsx'
import { useToast } from '../../../components/toast.tsx'
import type { Act } from '../../act/act.ts'
import { ChangedFields } from '../../act/changed-fields.tsx'
import { PreviewPanel } from '../../act/preview.tsx'
import { ReasonField } from '../../act/reason-field.tsx'
import { useProposal } from '../../act/use-proposal.ts'
import { BacktestResult } from './backtest.tsx'
import { createPolicy, editPolicy, type PolicyForm } from './form.ts'
import { PolicyFields } from './form-fields.tsx'
import { backtestDays } from './policies.ts'
import classes from './policy-form-page.module.css'

const route = getRouteApi('/policies/$id/edit')

export const NewPolicyPage = () => <PolicyFormOf act={createPolicy} />

export function EditPolicyPage() {
  const query = useOne('policies.show', { id: Number(route.useParams().id) })
  return (
    <QueryState query={query} rows={10}>
      {(loaded) => <EditPolicy key={loaded.data.id} loaded={loaded} />}
    </QueryState>
  )
}

function EditPolicy({ loaded }: { loaded: Parameters<typeof editPolicy>[0] }) {
  // As it was when the page was opened: a later change by somebody else is shown as a conflict.
  const [first] = useState(loaded)
  const act = useMemo(() => editPolicy(first), [first])
  return <PolicyFormOf act={act} id={first.data.id} />
}

type SaveId = 'policies.create' | 'policies.edit'

/** The form beside the backtest of its values. A policy is saved only after its backtest was shown. */
function PolicyFormOf<Id extends SaveId, R>({ act, id }: { act: Act<Id, R, PolicyForm>; id?: number }) {
  const navigate = useNavigate()
  const toast = useToast()
  const leave = (to: number | undefined) =>
    void (to === undefined
      ? navigate({ to: '/policies' })
      : navigate({ to: '/policies/$id', params: { id: String(to) } }))
  const finish = (policy: AnswerOf<SaveId>) => {
    toast(act.success)
    leave(policy.id)
  }
  const proposal = useProposal(act, finish as (data: AnswerOf<Id>) => void, () => undefined)
  const { form, conflict, isPreviewed, isActing } = proposal
  // The signal and the kind that the backtest is of: the form may have others by now.
  const [tested, setTested] = useState(form)
  const runBacktest = () => {
    setTested(form)
    proposal.requestPreview()
  }
  return (
    <>
      <PageHead
        title={act.title}
        above={
          <>
            <To to="/policies">Policies</To> / {id ?? 'new'}
          </>
        }
      />
      {conflict ? (
        <Conflict by="Another administrator" resume={proposal.resume} close={() => leave(id)}>
          <ChangedFields before={proposal.loaded} now={conflict.data} />
        </Conflict>
      ) : (
        <form
          className={classes.sides}
          onSubmit={(event) => {
            event.preventDefault()
            if (!isPreviewed) runBacktest()
            else if (proposal.mayAct) proposal.act()
          }}
        >
          <div className={classes.fields}>
            <PolicyFields form={form} set={proposal.set} />
          </div>
          <section className={classes.result} aria-labelledby="backtest">
            <Group justify="space-between" mb="sm">
              <Title order={2} id="backtest">
                Backtest of the last {backtestDays} days
              </Title>
              <Button
                variant="default"
                onClick={runBacktest}
                disabled={!proposal.isComplete || isActing}
                loading={proposal.preview.isFetching}
              >
                Backtest
              </Button>
            </Group>
            <Result proposal={proposal} tested={tested} />
          </section>
          <Stack className={classes.save ?? ''}>
            <ReasonField
              value={proposal.reason}
              onChange={proposal.setReason}
              operation={proposal.operation}
              fields={proposal.fields}
              isRequired
              isFirst={false}
            />
            <Failure of={proposal.failure} />
            <Group>
              <Button type="submit" loading={isActing} disabled={isPreviewed && !proposal.mayAct}>
                {typeof act.button === 'string' ? act.button : 'Save'}
              </Button>
              <Button variant="default" onClick={() => leave(id)} disabled={isActing}>
                Cancel
              </Button>
              <Text size="sm" c="dimmed" role="status">
                {isPreviewed ? proposal.missing : 'The backtest runs before the policy is saved.'}
              </Text>
            </Group>
          </Stack>
        </form>
      )}
    </>
  )
}

function Result({
  proposal: { preview, isPreviewed, isComplete },
  tested,
}: {
  proposal: ReturnType<typeof useProposal<SaveId, unknown, PolicyForm>>
  tested: PolicyForm
}) {
  const backtest = preview.data?.backtest
  if (preview.isFetching && (!preview.data || preview.isPlaceholderData)) return <Loading rows={8} />
  if (!preview.data && !preview.error) {
    return (
      <Text c="dimmed" className={classes.hint ?? ''}>
        “Backtest” shows when this policy would have fired, for which projects, and what administrators did
        themselves.
      </Text>
    )
  }
  return (
    <Stack>
      {!isPreviewed && !preview.isFetching && !preview.error && (
        <Alert color="yellow">The form has changed since this backtest.</Alert>
      )}
      <PreviewPanel query={preview} isComplete={isComplete} />
      {backtest && (
        <div className={isPreviewed ? undefined : classes.old}>
          <BacktestResult backtest={backtest} of={tested} />
        </div>
      )}
    </Stack>
  )
}
