"""What converters of several formats share: functions of tensors under construction, which know no format."""
