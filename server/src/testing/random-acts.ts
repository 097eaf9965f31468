import type { Act, DomainEdit, ModelRoute, ModelState, RouteFields } from './project-model.ts'
import type { Chance } from './random.ts'

/** Acts on a project's domains, routes and keys, by chance: mostly sensible ones, about what the state knows. */
export class RandomActs {
  readonly #chance: Chance
  /** Few, so that they meet. */
  readonly #names: readonly string[]

  constructor(chance: Chance, names: readonly string[]) {
    this.#chance = chance
    this.#names = names
  }

  /** A handful that are all sent at once, a rename among them. */
  round(state: ModelState): Act[] {
    const more = Array.from({ length: 2 + this.#chance.below(4) }, () => this.#any(state))
    return [this.#rename(state), this.#routeAct(state), this.#read(state), ...more]
  }

  #any(state: ModelState): Act {
    const kinds = [
      () => this.#rename(state),
      () => this.#routeAct(state),
      () => this.#routeAct(state),
      () => this.#routeAct(state),
      () => this.#keyAct(state),
      () => this.#read(state),
      () => this.#read(state),
      () => this.#domainAct(state),
    ]
    return this.#chance.pick(kinds)()
  }

  #read(state: ModelState): Act {
    return this.#chance.pick<() => Act>([
      () => ({ kind: 'routing.list' }),
      () => ({ kind: 'routing.list' }),
      () => ({ kind: 'domains.list' }),
      () => ({ kind: 'api-keys.list' }),
      () => ({ kind: 'domains.show', id: this.#idOf(state.domains) }),
      () => ({ kind: 'routing.show', id: this.#idOf(state.routes) }),
    ])()
  }

  #domainAct(state: ModelState): Act {
    const body = { name: this.#name(), mta_provider: 'ses' }
    if (state.domains.length < 2 || (state.domains.length < 4 && this.#chance.happens(0.2)))
      return { kind: 'domains.create', body }
    return { kind: 'domains.delete', ...this.#target(state.domains) }
  }

  #rename(state: ModelState): Act {
    const domain = this.#target(state.domains)
    const name = this.#chance.happens(0.85) ? this.#name() : undefined
    const body: DomainEdit = {
      ...(name === undefined ? {} : { name }),
      ...(this.#chance.happens(0.1) ? { mta_provider: this.#chance.happens(0.2) ? 'service' : 'ses' } : {}),
      ...this.#choice(state, domain.id, name),
    }
    return { kind: 'domains.edit', ...domain, body }
  }

  #choice(state: ModelState, id: number, name: string | undefined): DomainEdit {
    const dice = this.#chance.next()
    if (dice < 0.55 || name === undefined) return dice < 0.5 ? { preserve_local_parts: true } : {}
    if (dice < 0.6) return {}
    const routes = state.routes.filter(({ domain_id, match }) => domain_id === id && match === 'address')
    const route_replacements = routes.map((route) => this.#replacement(route, name))
    if (dice < 0.64) route_replacements.pop()
    if (dice > 0.98) return { preserve_local_parts: true, route_replacements }
    if (dice > 0.96) route_replacements.push({ route_id: 0, address: `info@${name}` })
    return { route_replacements }
  }

  #replacement({ id, address }: ModelRoute, name: string) {
    const local = this.#chance.happens(0.7) ? `${address?.split('@')[0]}` : this.#local()
    const under = this.#chance.happens(0.97) ? name : this.#name()
    return { route_id: id, address: `${local}@${under}` }
  }

  #routeAct(state: ModelState): Act {
    const dice = this.#chance.next()
    if (state.routes.length < 4 || dice < 0.35) return { kind: 'routing.create', body: this.#route(state) }
    const target = this.#target(state.routes)
    if (dice < 0.55 || state.routes.length > 12) return { kind: 'routing.delete', ...target }
    const before = state.routes.find(({ id }) => id === target.id)
    const body = before && this.#chance.happens(0.5) ? this.#touched(before) : this.#route(state)
    return { kind: 'routing.edit', ...target, body }
  }

  /** What a client sends that read it and changes one thing, or nothing. */
  #touched({ id: _, version: __, ...fields }: ModelRoute): RouteFields {
    return { ...fields, is_active: this.#chance.happens(0.5) }
  }

  #route(state: ModelState): RouteFields {
    const domain_id = this.#idOf(state.domains)
    const known = state.domains.find(({ id }) => id === domain_id)?.name
    const name = known !== undefined && this.#chance.happens(0.7) ? known : this.#name()
    const isCatchAll = this.#chance.happens(0.15)
    const action = this.#chance.pick(['forward', 'reject', 'drop'])
    const elsewhere = this.#chance.happens(0.1) ? this.#name().toLowerCase() : 'elsewhere.example.net'
    return {
      domain_id,
      match: isCatchAll ? 'catch_all' : 'address',
      address: isCatchAll ? null : `${this.#local()}@${name.toLowerCase()}`,
      action,
      endpoint_id: null,
      forward_to: action === 'forward' ? `team@${elsewhere}` : null,
      is_active: this.#chance.happens(0.8),
    }
  }

  #keyAct(state: ModelState): Act {
    const dice = this.#chance.next()
    const domain_id = this.#chance.happens(0.7) ? this.#idOf(state.domains) : null
    const body = { name: `Key ${this.#chance.below(5)}`, domain_id }
    if (state.keys.length < 2 || dice < 0.25) return { kind: 'api-keys.create', body }
    const target = this.#target(state.keys)
    if (dice < 0.45 || state.keys.length > 6) return { kind: 'api-keys.delete', ...target }
    return { kind: 'api-keys.edit', ...target, body }
  }

  #target(things: readonly { id: number; version: number }[]) {
    const id = this.#idOf(things)
    const version = things.find((thing) => thing.id === id)?.version
    return {
      id,
      ...(version !== undefined && this.#chance.happens(0.3) ? { ifMatch: version } : {}),
      ...(this.#chance.happens(0.05) ? { isDryRun: true } : {}),
    }
  }

  /** One in thirty is of nothing. */
  #idOf(things: readonly { id: number }[]): number {
    if (things.length === 0 || this.#chance.happens(0.03)) return 0
    return this.#chance.pick(things).id
  }

  #name(): string {
    const name = this.#chance.pick(this.#names)
    return this.#chance.happens(0.1) ? name.toUpperCase() : name
  }

  #local(): string {
    return this.#chance.pick(['info', 'sales', 'help', 'a.b', 'Post', 'info+x', 'billing'])
  }
}
