import type { MessageTable } from './types.ts'

/** Problems of manifests, as an API server would report them: PX20xx. */
export const manifestMessages = {
  PX2001: {
    title: 'manifest does not parse',
    cause: 'A document is not valid YAML, or is not an object with apiVersion, kind and metadata. The last valid version of its objects stays in force.',
    fix: 'Correct the syntax at the line that the message names.',
  },
  PX2002: {
    title: 'kind or version is not known',
    cause: 'kind is misspelt, belongs to another apiVersion, or has a version that is not served.',
    fix: 'Correct kind or apiVersion as the message says.',
  },
  PX2003: {
    title: 'unknown field of a manifest',
    cause: 'A field is not part of the schema of its kind. An API server rejects it, or drops it silently.',
    fix: 'Correct the name of the field. Indentation may have moved it to another object.',
  },
  PX2004: {
    title: 'required field of a manifest is missing',
    cause: 'An object lacks a field that it needs, or the field is empty.',
    fix: 'Add the field. docs/reference describes the kinds of this project.',
  },
  PX2005: {
    title: 'value of a manifest has the wrong type',
    cause: 'A value is not of the type of its field. YAML reads 80 and true as numbers and booleans, not as texts.',
    fix: 'Write a value of the type that the message names; quote texts.',
  },
  PX2006: {
    title: 'value of a manifest is not allowed',
    cause: 'A value is none of the allowed ones, is out of range, or does not have the required form.',
    fix: 'Write a value that the message allows.',
  },
  PX2007: {
    title: 'list or map of a manifest is not allowed',
    cause: 'A list or map has too few or too many items, or two items with the same key.',
    fix: 'Change the items as the message says.',
  },
  PX2008: {
    title: 'fields of a manifest contradict each other',
    cause: 'An object breaks a validation rule of its kind, for example by fields that exclude each other. An API server rejects it.',
    fix: 'Change the fields as the message says.',
  },
  PX2009: {
    title: 'name is not valid',
    cause: 'metadata.name or metadata.namespace has characters that an API server does not accept.',
    fix: 'Use lower-case letters, digits and -.',
  },
  PX2010: {
    title: 'kind is not read',
    cause: 'The object is of a kind that this program does not use. It is ignored.',
    fix: 'Nothing, if the object is for another program.',
  },
  PX2011: {
    title: 'object is defined twice',
    cause: 'Two documents have the same kind, namespace and name. The first one counts, files in alphabetical order.',
    fix: 'Remove or rename one of them.',
  },
  PX2012: {
    title: 'manifest file cannot be read',
    cause: 'The process may not read a file, or it vanished while it was read. Its last valid content stays in force.',
    fix: 'Correct the permissions of the file.',
  },
} as const satisfies MessageTable

export type ManifestCode = keyof typeof manifestMessages
