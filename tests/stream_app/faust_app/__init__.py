"""What is put right around Faust."""
