import { CompletedMultipartUpload$, Tagging$ } from '@aws-sdk/client-s3';
import { DescribeInstancesRequest$, Reservation$, RunInstancesRequest$ } from '@aws-sdk/client-ec2';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { readQuery } from './query-read.ts';
import { parseXml, readXml } from './xml-read.ts';
import { escapeXml, xmlMembers } from './xml-write.ts';

test('any text survives a round trip through XML', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      // An XML parser may normalise a single line end.
      expect(parseXml(`<a>${escapeXml(text)}</a>`)?.text).toBe(text);
    }),
  );
});

test('a document is parsed by its schema, including flat lists and attributes', () => {
  const root = parseXml(
    '<?xml version="1.0"?><X xmlns="http://s3/"><Part><PartNumber>1</PartNumber><ETag>&quot;a&quot;</ETag></Part><Part/></X>',
  );
  expect(root && readXml(CompletedMultipartUpload$, root)).toEqual({ Parts: [{ PartNumber: 1, ETag: '"a"' }, {}] });
});

test.for(['<a>', '<a></b>', '<a/><b/>', 'text', '<a b></a>', ''])('%j is not a document', (text) => {
  expect(parseXml(text)).toBeUndefined();
});

test('an element that the schema does not know makes a document invalid', () => {
  const root = parseXml('<Tagging><TagSet/><Strange/></Tagging>');
  expect(root && readXml(Tagging$, root)).toBeUndefined();
});

test('wire names follow the model, and an unknown member fails the emulator', () => {
  const launched = new Date(Date.UTC(2030, 0, 1));
  const instance = { InstanceId: 'i-1', LaunchTime: launched, SecurityGroups: [{ GroupId: 'sg-1' }] };
  expect(xmlMembers(Reservation$, { Instances: [instance] })).toBe(
    '<instancesSet><item><groupSet><item><groupId>sg-1</groupId></item></groupSet><instanceId>i-1</instanceId><launchTime>2030-01-01T00:00:00.000Z</launchTime></item></instancesSet>',
  );
  expect(() => xmlMembers(Reservation$, { Machines: [] })).toThrow('Machines');
});

test('form parameters are parsed by wire names, and unknown ones are refused', () => {
  const form = new URLSearchParams(
    'Action=DescribeInstances&Filter.1.Name=tag:a&Filter.1.Value.1=x&Filter.1.Value.2=y&InstanceId.1=i-1&MaxResults=5',
  );
  expect(readQuery(DescribeInstancesRequest$, form, 'ec2')).toEqual({
    Filters: [{ Name: 'tag:a', Values: ['x', 'y'] }],
    InstanceIds: ['i-1'],
    MaxResults: 5,
  });
  expect(() => readQuery(RunInstancesRequest$, new URLSearchParams('InstanceTyp=t3.micro'), 'ec2')).toThrow(
    'InstanceTyp is not recognized',
  );
  expect(() => readQuery(RunInstancesRequest$, new URLSearchParams('MinCount=one'), 'ec2')).toThrow('MinCount is invalid');
});
