import Type from 'typebox'
import { recordLookup } from '../../core/control/audit/lookups.ts'
import { requestEvidence } from '../../core/control/evidence/evidence.ts'
import { EvidenceRequest } from '../../core/control/evidence/wire.ts'
import { findProject } from '../../core/control/projects/projects.ts'
import { requireMessages } from '../../core/mail/messages/messages.ts'
import { ProjectParams } from '../../platform/http/parameters.ts'
import { ordinaryBodyLimitBytes } from '../../platform/http/request-checks.ts'
import { adminQuery } from '../operation.ts'

const id = 'evidence.create'

export const createEvidenceQuery = adminQuery({
  id,
  path: '/admin/projects/:project_id/evidence',
  summary: 'Request evidence about a project',
  description:
    "Makes a signed file with the project's audit entries and interventions in the range, its daily figures, and the timelines of the given messages. Read `evidence.show` until the `status` is `ready`, then download the file. `postern audit verify --evidence` verifies it on any machine with the public key. The request is a POST because the list of messages can be long; it changes nothing, has no reason, and is recorded as a lookup. A project can have 20 files at the same time, and an administrator can have requested 100.",
  params: ProjectParams,
  query: {},
  body: {
    fields: EvidenceRequest,
    example: { from: '2026-11-01T00:00:00Z', to: '2026-11-15T00:00:00Z', message_ids: [] },
    limitBytes: ordinaryBodyLimitBytes,
  },
  status: 202,
  refusals: ['limit_exceeded'],
  answer: Type.Object({ id: Type.Integer() }, { title: 'RequestedEvidence', additionalProperties: false }),
  async run({ db, mailDbFor, domains: { jobs }, actorId, requestId, params: { project_id }, body }) {
    await db.read((tx) => findProject(tx, project_id))
    const messageIds = body.message_ids ?? []
    if (messageIds.length > 0)
      await mailDbFor(project_id).read((tx) => requireMessages(tx, project_id, messageIds))
    const evidenceId = await db.transaction(async (tx) => {
      const requested = await requestEvidence(tx, { projectId: project_id, requestedBy: actorId }, body)
      await jobs.send(tx, 'evidence.make', {})
      return requested
    })
    const question = [`evidence ${evidenceId}:`, body.from, 'to', body.to, ...messageIds].join(' ')
    await recordLookup(db, { actorId, operation: id, question, projectIds: [project_id], requestId })
    return { answer: { id: evidenceId } }
  },
})
