import Type from 'typebox'
import { Id } from '../platform/http/parameters.ts'

/** Path parameters, by how deep the thing lies. */
const ProjectId = { ...Id, description: 'The project.', examples: [1] }
const ItemId = { ...Id, description: 'The thing itself.', examples: [1] }

export const NoParams = Type.Object({}, { additionalProperties: false })
export const ItemParams = Type.Object({ id: ItemId }, { additionalProperties: false })
export const ProjectParams = Type.Object({ project_id: ProjectId }, { additionalProperties: false })
export const ProjectItemParams = Type.Object(
  { project_id: ProjectId, id: ItemId },
  { additionalProperties: false },
)
