import type pg from 'pg'

/**
 * The parts of a schema that a program can rely on. They are read from PostgreSQL's catalogue, so procedures and quoted
 * names cannot hide a change. Partitions are excluded, because their parents represent them.
 */
export interface Catalogue {
  /** Tables, views and sequences by name, with their kind. */
  relations: Map<string, string>
  columns: Map<string, Column>
  /** Functions by signature, with their return type. */
  functions: Map<string, string>
  /** Unique indexes, keyed by definition instead of by name. */
  uniques: Map<string, Owned>
  /** Table constraints, keyed by definition instead of by name. */
  constraints: Map<string, Owned & { isValidated: boolean }>
  /** Policies, and whether row-level security is enabled. */
  policies: Map<string, Owned & { rule: string }>
  /** Domains and enums with their definition. */
  types: Map<string, string>
  /** Privileges, one entry each. */
  grants: Set<string>
}

interface Owned {
  table: string
}

export interface Column extends Owned {
  type: string
  isRequired: boolean
  /** Whether the column has a default or is an identity column. */
  isFilled: boolean
}

const schemas = `array['control', 'mail', 'postern']::regnamespace[]`
const ofTables = `relnamespace = any (${schemas}) and not relispartition`

export async function readCatalogue(client: pg.ClientBase): Promise<Catalogue> {
  const read = async <T extends pg.QueryResultRow>(text: string): Promise<T[]> =>
    (await client.query<T>(text)).rows
  const map = async <V extends object>(text: string): Promise<Map<string, V>> =>
    new Map((await read<{ key: string } & V>(text)).map(({ key, ...value }) => [key, value as unknown as V]))
  const strings = async (text: string): Promise<Map<string, string>> =>
    new Map((await read<{ key: string; value: string }>(text)).map(({ key, value }) => [key, value]))
  return {
    relations: await strings(
      `select oid::regclass::text as key, relkind::text as value from pg_class
        where ${ofTables} and relkind in ('r', 'p', 'v', 'm', 'S')`,
    ),
    columns: await map<Column>(
      `select attrelid::regclass || '.' || attname as key, attrelid::regclass::text as table,
              format_type(atttypid, atttypmod) as type, attnotnull as "isRequired",
              atthasdef or attidentity <> '' as "isFilled"
         from pg_attribute join pg_class on pg_class.oid = attrelid
        where ${ofTables} and relkind in ('r', 'p', 'v', 'm') and attnum > 0 and not attisdropped`,
    ),
    functions: await strings(
      `select oid::regprocedure::text as key, coalesce(pg_get_function_result(oid), prokind::text) as value
         from pg_proc where pronamespace = any (${schemas}) and not exists
              (select from pg_depend where objid = pg_proc.oid and deptype = 'e')`,
    ),
    uniques: await map<Owned>(
      `select regexp_replace(pg_get_indexdef(indexrelid), ' INDEX \\S+ ON (ONLY )?', ' on ') as key,
              indrelid::regclass::text as table
         from pg_index join pg_class on pg_class.oid = indrelid where ${ofTables} and indisunique`,
    ),
    constraints: await map<Owned & { isValidated: boolean }>(
      `select conrelid::regclass || ': ' || replace(pg_get_constraintdef(pg_constraint.oid), ' NOT VALID', '') as key,
              conrelid::regclass::text as table, convalidated as "isValidated"
         from pg_constraint join pg_class on pg_class.oid = conrelid
        where ${ofTables} and contype in ('c', 'f', 'x') and conparentid = 0`,
    ),
    policies: await map<Owned & { rule: string }>(
      `select polrelid::regclass || ': ' || polname as key, polrelid::regclass::text as table,
              concat_ws(' ', polcmd, polpermissive, polroles::regrole[], pg_get_expr(polqual, polrelid),
                        pg_get_expr(polwithcheck, polrelid)) as rule
         from pg_policy join pg_class on pg_class.oid = polrelid where ${ofTables}
        union all
       select oid::regclass || ': row-level security', oid::regclass::text,
              concat_ws(' ', relrowsecurity, relforcerowsecurity)
         from pg_class where ${ofTables} and relkind in ('r', 'p')`,
    ),
    types: await strings(
      `select pg_type.oid::regtype::text as key,
              concat_ws(' ', format_type(typbasetype, typtypmod), typnotnull,
                (select string_agg(pg_get_constraintdef(oid), ' ' order by conname) from pg_constraint
                  where contypid = pg_type.oid),
                (select string_agg(enumlabel, ' ' order by enumsortorder) from pg_enum
                  where enumtypid = pg_type.oid)) as value
         from pg_type where typnamespace = any (${schemas}) and typtype in ('d', 'e')`,
    ),
    grants: new Set((await read<{ key: string }>(grants)).map(({ key }) => key)),
  }
}

/** Includes column privileges. */
const grants = `
  select concat_ws(' ', privilege_type, 'on', pg_class.oid::regclass, 'to', grantee::regrole) as key
    from pg_class, aclexplode(relacl) where ${ofTables} and grantee <> relowner
   union all
  select concat_ws(' ', privilege_type, 'on', attrelid::regclass || '.' || attname, 'to', grantee::regrole)
    from pg_attribute join pg_class on pg_class.oid = attrelid, aclexplode(attacl) where ${ofTables}
   union all
  select concat_ws(' ', privilege_type, 'on', pg_proc.oid::regprocedure, 'to', grantee::regrole)
    from pg_proc, aclexplode(proacl) where pronamespace = any (${schemas}) and grantee <> proowner
   union all
  select concat_ws(' ', privilege_type, 'on schema', nspname, 'to', grantee::regrole)
    from pg_namespace, aclexplode(nspacl) where oid = any (${schemas}) and grantee <> nspowner`
