import Type from 'typebox'
import { Changes, Effects, Warnings } from '../preview-fields.ts'

export const maxSamples = 20

/** In the preview of `bulk.create`. */
export const BulkPreview = Type.Object(
  {
    matched: Type.Integer({ description: 'The number of projects.' }),
    evaluated: Type.Integer({
      description: 'The number of projects for which the operation was tried, in order of their ids.',
    }),
    is_complete: Type.Boolean({
      description:
        'Whether the operation was tried for every project. If not, the counts below are of those that were tried.',
    }),
    changed: Type.Integer({ description: 'Projects that would be changed.' }),
    unchanged: Type.Integer({ description: 'Projects that already are as the operation leaves them.' }),
    refused: Type.Integer({ description: 'Projects for which the operation would be rejected.' }),
    refusals: Type.Array(
      Type.Object(
        {
          error: Type.String({ description: 'The error code.' }),
          message: Type.String({ description: 'The message for the first of the projects.' }),
          count: Type.Integer(),
        },
        { additionalProperties: false },
      ),
    ),
    sample: Type.Array(
      Type.Object(
        {
          project_id: Type.Integer(),
          project_name: Type.String(),
          changes: Changes,
          effects: Effects,
          warnings: Warnings,
        },
        { additionalProperties: false },
      ),
      { description: `The previews of up to ${maxSamples} of the projects that would be changed.` },
    ),
  },
  { title: 'BulkPreview', additionalProperties: false },
)
