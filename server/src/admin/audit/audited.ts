/**
 * The resource types in the audit log. The filter rejects other values, because a mistyped filter should cause an
 * error instead of an empty list.
 */
export const auditedResources = [
  'api_key',
  'bulk_action',
  'discard',
  'domain',
  'endpoint',
  'intervention',
  'master_key',
  'member',
  'message',
  'note',
  'person',
  'plan',
  'platform_suppression',
  'policy',
  'project',
  'queue',
  'reversal',
  'route',
  'suppression',
  'user',
]
