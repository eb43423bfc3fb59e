import type { ValidationRule } from '#api/schema.ts'

/**
 * The CEL rules of api/schema.ts that count which fields are set. Other rules need a CEL engine: in a cluster the API
 * server evaluates them, here translation has to cope with what they forbid.
 */
const COUNTING = /^\[((?:has\(self\.\w+\),?)+)\]\.(exists_one\(x,x\)|exists\(x,x\)|filter\(x,x\)\.size\(\) <= 1|filter\(x,x\)\.size\(\) == 0)$/

/** Whether `value` breaks `rule`. */
export function brokenRule(rule: ValidationRule, value: Readonly<Record<string, unknown>>): boolean {
  const [, fields, test] = COUNTING.exec(rule.rule) ?? []
  if (fields === undefined) return false
  const count = [...fields.matchAll(/self\.(\w+)/g)].filter(([, field = '']) => value[field] !== undefined).length
  switch (test) {
    case 'exists_one(x,x)':
      return count !== 1
    case 'exists(x,x)':
      return count === 0
    case 'filter(x,x).size() <= 1':
      return count > 1
    default:
      return count > 0
  }
}
