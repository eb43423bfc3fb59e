import { compile, evalBool, isParseError, type Program } from '#api/cel/index.ts'
import type { ValidationRule } from '#api/schema.ts'

const programs = new Map<string, Program>()
const environment = { variables: new Set(['self']) }

function programOf(rule: string): Program {
  let program = programs.get(rule)
  if (program === undefined) {
    const result = compile(rule, environment)
    if (isParseError(result)) throw new Error(`the schema has a rule that does not compile: ${rule}`)
    programs.set(rule, (program = result))
  }
  return program
}

/** Whether `value` breaks a CEL rule of our schema; as in an API server, one that cannot be evaluated is broken. */
export function isBroken({ rule }: ValidationRule, value: unknown): boolean {
  return !evalBool(programOf(rule), { self: value })
}

/** Rules about which fields are set. They hold for the object as written, before defaults are filled in (api/codegen/crd.ts). */
export function isAboutPresence({ rule }: ValidationRule): boolean {
  return rule.startsWith('[has(')
}
